/** Alerts in the console: rules, open alerts, messages, resends and tests. */
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { activityMark } from '../../../src/features/console/console.ts';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import type { Overview } from '../../../src/features/console/routes/answers.ts';
import type { AlertsAnswer, DeliveriesAnswer } from '../../../src/features/notifications/answers.ts';
import { deliver } from '../../../src/features/notifications/deliver.ts';
import { evaluateAlerts } from '../../../src/features/notifications/evaluate.ts';
import { operatorsRecipient } from '../../../src/features/notifications/receivers.ts';
import { ALERT_KINDS, alertRules } from '../../../src/features/notifications/rules.ts';
import { until } from '../../support/until.ts';
import { type Receiver, receiver } from '../notifications/webhook-receiver.ts';
import { Browser } from '../operators/accounts-scene.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

const closing = new AsyncDisposableStack();
let scene: ConsoleScene;
let hook: Receiver;
beforeAll(async () => {
  hook = closing.use(await receiver());
  scene = closing.use(
    await openConsoleScene({
      ALERT_WEBHOOK_URL: hook.url,
      ALERT_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
    }),
  );
  await scene.sync(1);
  for (let n = 0; n < 3; n++) await scene.fail();
  await evaluate();
});
afterAll(() => closing.disposeAsync());

const evaluate = () =>
  evaluateAlerts(scene.worker.store.db, scene.config.sources, alertRules(scene.config), new Date());
const send = async () => {
  const [webhook] = alertRules(scene.config).webhooks;
  if (!webhook) throw new Error('unreachable: the scene has one');
  const recipient = operatorsRecipient(webhook);
  await deliver({ db: scene.worker.store.db, recipient, logger: pino({ level: 'silent' }) });
};
const alerts = async () => (await scene.get('/api/alerts')) as AlertsAnswer;
const deliveries = async (query = '') =>
  (await scene.get(`/api/alerts/deliveries${query}`)) as DeliveriesAnswer;
const latest = async () => (await auditRecords(scene.worker.store.db, { limit: 1 })).rows[0];

describe('alerts', () => {
  it('have rules and webhooks, without the webhooks’ addresses', async () => {
    const answer = await alerts();
    expect(answer.firing).toMatchObject([{ kind: 'source_failing', subject: 'hetzner', resolvedAt: null }]);
    expect(answer.over).toEqual([]);
    expect(answer.rules.map(({ kind }) => kind)).toEqual([...ALERT_KINDS, 'exports_behind']);
    expect(answer.rules).toContainEqual({
      kind: 'source_failing',
      opens: '3 runs in a row of a source failed',
    });
    expect(answer.webhooks).toEqual([{ id: 'default', format: 'standard', isSigned: true, kinds: null }]);
    expect(JSON.stringify(answer)).not.toMatch(/of-a-secret-path|whsec_|AQEB/);
  });

  it('have messages with state, attempts and the last error, which can be searched', async () => {
    hook.status = 503;
    await send();
    const { total, rows } = await deliveries();
    expect(total).toBe(1);
    expect(rows).toMatchObject([
      {
        webhook: 'default',
        type: 'alerts.opened',
        state: 'waiting',
        attempts: 1,
        lastError: 'it answered 503',
        nextAttemptAt: expect.any(String),
        alerts: 1,
        summaries: [expect.stringMatching(/^hetzner has failed 3 times in a row/)],
      },
    ]);
    const counts = async (query: string) => (await deliveries(query)).total;
    expect(
      await Promise.all(
        ['?q=HETZNER', '?q=answered%20503', '?q=ovh', '?q=%25', '?state=waiting', '?state=given%20up'].map(
          counts,
        ),
      ),
    ).toEqual([1, 1, 0, 0, 1, 0]);
    expect(await scene.get('/api/alerts/deliveries?state=lost')).toEqual({
      error: 'state must be one of waiting, delivered, given up; it is "lost"',
      field: 'state',
    });
    expect((await deliveries('?offset=1')).rows).toEqual([]);
  });

  it('are acknowledged and snoozed by an operator with a reason, which the overview shows too', async () => {
    const [alert] = (await alerts()).firing;
    const path = `/api/alerts/${alert?.id}`;
    const reason = 'the provider repairs it';
    const by = { by: 'OPS_TOKEN', reason };
    expect(await scene.post(`${path}/acknowledge`, { reason })).toMatchObject({
      status: 200,
      body: { alert: alert?.id, acknowledgement: { ...by, until: null } },
    });
    expect((await alerts()).firing).toMatchObject([{ acknowledgement: { ...by, until: null } }]);
    expect(await scene.post(`${path}/snooze`, { reason, for: '4h' })).toMatchObject({ status: 200 });
    expect(await latest()).toMatchObject({ action: 'alert.snooze', ...by });
    const { problems } = await until(async () => {
      const found = (await scene.get('/api/overview')) as Overview;
      return found.problems.some(({ acknowledgement }) => acknowledgement?.until) && found;
    });
    expect(problems.filter(({ acknowledgement }) => acknowledgement)).toMatchObject([
      { kind: 'failing', source: 'hetzner', acknowledgement: by },
    ]);
    const before = await latest();
    for (const [to, body, status, error] of [
      [`${path}/acknowledge`, {}, 400, /^reason is missing/],
      [`${path}/snooze`, { reason }, 400, /^for must be a span .* at most 30d$/],
      [`${path}/snooze`, { reason, for: '31d' }, 400, /^for must be/],
      ['/api/alerts/999/acknowledge', { reason }, 404, /there is no alert 999/],
    ] as const)
      expect(await scene.post(to, body)).toMatchObject({
        status,
        body: { error: expect.stringMatching(error) },
      });
    expect(await latest()).toEqual(before);
  });

  it('are sent again by an operator, who is recorded', async () => {
    hook.status = 200;
    await scene.worker.store.sql`update messages set next_attempt_at = now()`;
    await send();
    const [first] = (await deliveries('?state=delivered')).rows;
    const mark = await activityMark(scene.worker.store.db);
    expect(await scene.post(`/api/alerts/deliveries/${first?.id}/resend`, {})).toEqual({
      status: 200,
      body: { delivery: first?.id, webhook: 'default' },
    });
    expect(await latest()).toMatchObject({
      by: 'OPS_TOKEN',
      action: 'alert.resend',
      subject: { kind: 'delivery', id: String(first?.id) },
      details: { webhook: 'default' },
    });
    // Open pages are notified.
    const waiting = await activityMark(scene.worker.store.db);
    await send();
    expect(new Set([mark, waiting, await activityMark(scene.worker.store.db)]).size).toBe(3);
    const ids = hook.taken.map(({ headers }) => headers['webhook-id']);
    expect(ids).toEqual([first?.messageId, first?.messageId]);
    const before = await latest();
    expect(await scene.post('/api/alerts/deliveries/999/resend', {})).toMatchObject({ status: 404 });
    expect(await latest()).toEqual(before);
  });

  it('have a test message, and the page shows its result', async () => {
    const test = () => scene.post('/api/alerts/webhooks/default/test', {});
    expect(await test()).toEqual({ status: 200, body: { webhook: 'default', problem: null } });
    expect(hook.taken.at(-1)?.text).toContain('"type":"alerts.test"');
    expect(await latest()).toMatchObject({
      action: 'alert.test',
      subject: { kind: 'webhook', id: 'default' },
    });
    hook.status = 500;
    expect(await test()).toMatchObject({ body: { problem: 'it answered 500' } });
    expect(await scene.post('/api/alerts/webhooks/unknown/test', {})).toMatchObject({ status: 404 });
  });

  it('may be read by a viewer, who cannot send anything', async () => {
    const vera = new Browser(scene.app);
    await vera.signIn('vera');
    expect((await vera.sendRequest('GET', '/api/alerts')).statusCode).toBe(200);
    const requestsBefore = hook.requestCount;
    for (const path of ['deliveries/1/resend', 'webhooks/default/test', '1/acknowledge', '1/snooze'])
      expect((await vera.sendRequest('POST', `/api/alerts/${path}`, { payload: {} })).statusCode).toBe(403);
    expect([hook.requestCount, (await latest())?.action]).toEqual([requestsBefore, 'session.begin']);
  });

  it('that are resolved state their end, the last first', async () => {
    await scene.sync(1);
    await evaluate();
    const { firing, over } = await alerts();
    expect(firing).toEqual([]);
    expect(over).toMatchObject([{ kind: 'source_failing', resolvedAt: expect.any(String) }]);
    const late = await scene.post(`/api/alerts/${over[0]?.id}/acknowledge`, { reason: 'too late' });
    expect(late).toMatchObject({ status: 409, body: { error: expect.stringContaining('is resolved') } });
  });
});
