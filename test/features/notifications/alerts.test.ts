import { createHmac } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { alertRecords } from '../../../src/db/alerts.ts';
import { type ClientDatabase, openStore } from '../../../src/db/connection/connect.ts';
import { pruneDifferences, recordDifference } from '../../../src/db/differences.ts';
import { decide, pendingBatches } from '../../../src/db/held-batches.ts';
import type { JudgedSource } from '../../../src/db/problems.ts';
import type { MachineFacts } from '../../../src/domain/machine-facts.ts';
import type { AlertMessage } from '../../../src/features/notifications/alert-messages.ts';
import { deliver, dueRecipients } from '../../../src/features/notifications/deliver.ts';
import { evaluateAlerts } from '../../../src/features/notifications/evaluate.ts';
import { findDeliveries, sendAgain } from '../../../src/features/notifications/messages.ts';
import { operatorsRecipient } from '../../../src/features/notifications/receivers.ts';
import {
  type AlertReceiver,
  type AlertRules,
  DEFAULT_RULES,
} from '../../../src/features/notifications/rules.ts';
import { freePort } from '../../../src/processes/port.ts';
import { disableSource } from '../../../src/sync/runs/disabled.ts';
import { finishRun } from '../../../src/sync/runs/run.ts';
import { cluster } from '../../sync/clusters/rows.ts';
import {
  ACME,
  LAX,
  OPERATOR,
  offer,
  offers,
  openScene,
  region,
  type Scene,
  STRICT,
} from '../../sync/scene.ts';
import { type Receiver, receiver } from './webhook-receiver.ts';

const HOUR = 3_600_000;
const SOURCES: readonly JudgedSource[] = [{ id: 'acme', kind: 'catalogue', maxAge: 3 * 3600 }];
const SECRET = Buffer.alloc(32, 7);

let scene: Scene;
let hook: Receiver;
let closing: AsyncDisposableStack;
beforeAll(async () => {
  scene = await openScene();
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(async () => {
  await scene.reset();
  closing = new AsyncDisposableStack();
  hook = closing.use(await receiver());
  return () => closing.disposeAsync();
});

const webhook = (more: Partial<AlertReceiver> = {}): AlertReceiver => ({
  id: 'ops',
  url: hook.url,
  secret: SECRET,
  format: 'standard',
  kinds: undefined,
  ...more,
});
const deliveryRecords = async (limit?: number) => (await findDeliveries(scene.store.db, { limit })).rows;

const rules = (more: Partial<AlertRules> = {}): AlertRules => ({
  ...DEFAULT_RULES,
  webhooks: [webhook()],
  ...more,
});
const later = (hours: number) => new Date(scene.now().getTime() + hours * HOUR);
const evaluate = (now: Date = scene.now(), more: Partial<AlertRules> = {}, sources = SOURCES) =>
  evaluateAlerts(scene.store.db, sources, rules(more), now);
const send = (to: AlertReceiver = webhook()) =>
  deliver({ db: scene.store.db, recipient: operatorsRecipient(to), logger: pino({ level: 'silent' }) });
const endPauses = () => scene.sql`update messages set next_attempt_at = now()`;
const messages = () => hook.taken.map(({ text }) => JSON.parse(text) as AlertMessage);
const kinds = (message: AlertMessage | undefined) =>
  message?.data.alerts.map(({ kind, subject }) => `${kind} ${subject}`);
const items = (count: number, amount = '0.06') => [region('fsn1'), ...offers('fsn1', count, { amount })];

describe('an alert', () => {
  it('is found on the connection of its transaction: other transactions may have all others', async () => {
    await scene.catalogue(items(3));
    await using store = openStore({ url: scene.db.url, role: 'worker', connections: 1 });
    const found = async ({ $client: sql }: ClientDatabase) => {
      const [row] = await sql`select count(*)::int as count from sources`;
      return [
        { kind: 'source_failing', subject: 'x', summary: `${row?.count} sources`, details: {} },
      ] as const;
    };
    expect(await evaluateAlerts(store.db, SOURCES, rules(), later(4), found)).toMatchObject({
      opened: [{ kind: 'source_failing', summary: '1 sources' }, { kind: 'source_stale' }],
    });
  });

  it('opens once, and resolves when its condition ends', async () => {
    await scene.catalogue(items(3));
    expect(await evaluate(later(2))).toEqual({ opened: [], repeated: [], resolved: [] });
    expect(await evaluate(later(4))).toMatchObject({ opened: [{ kind: 'source_stale', subject: 'acme' }] });
    expect(await evaluate(later(5))).toEqual({ opened: [], repeated: [], resolved: [] });
    await scene.catalogue(items(3));
    expect(await evaluate()).toMatchObject({ opened: [], resolved: [{ kind: 'source_stale' }] });
    await send();
    expect(messages().map(({ type }) => type)).toEqual(['alerts.opened', 'alerts.resolved']);
    expect(messages()[1]?.data.alerts[0]).toMatchObject({ resolved_at: expect.stringMatching(/Z$/) });
    expect(await alertRecords(scene.store.db, { isOpenOnly: true, limit: undefined })).toEqual([]);
    expect(await alertRecords(scene.store.db, { isOpenOnly: false, limit: undefined })).toHaveLength(1);
  });

  it('does not open for a disabled source', async () => {
    await scene.catalogue(items(3));
    await disableSource(scene.store.db, 'acme', OPERATOR);
    expect(await evaluate(later(9))).toEqual({ opened: [], repeated: [], resolved: [] });
  });

  it('gets reminders while it is open, at most every repeatHours hours', async () => {
    await scene.catalogue(items(3));
    await evaluate(later(4));
    await scene.sql`update alerts set notified_at = now() - interval '23 hours 59 minutes'`;
    expect(await evaluate(later(5))).toMatchObject({ repeated: [] });
    await scene.sql`update alerts set notified_at = now() - interval '24 hours 1 minute'`;
    expect(await evaluate(later(6))).toMatchObject({ repeated: [{ kind: 'source_stale' }] });
    expect(await evaluate(later(7))).toMatchObject({ repeated: [] });
  });

  it('opens for a region that is at least half sold out, and ends when its machines can be ordered again', async () => {
    const stock = (soldOut: number) => [
      ...items(9).slice(0, 10 - soldOut),
      ...offers('fsn1', 9, { excluded: 'sold_out' }).slice(9 - soldOut),
      region('hel1'),
      ...offers('hel1', 2, { excluded: 'sold_out' }),
    ];
    await scene.catalogue(items(9));
    await scene.catalogue(stock(4));
    expect(await evaluate()).toMatchObject({ opened: [] });
    await scene.catalogue(stock(5));
    expect(await evaluate()).toMatchObject({
      opened: [
        {
          kind: 'sold_out',
          subject: 'acme/fsn1',
          summary: '5 of 9 machines (56 %) in region fsn1 of acme are sold out: m5, m6, m7, …',
          details: { soldOut: 5, machines: 9 },
        },
      ],
    });
    await scene.catalogue(items(9));
    expect(await evaluate()).toMatchObject({ opened: [], resolved: [{ kind: 'sold_out' }] });
  });

  it('opens for clusters whose machine retires within 180 days, and ends when they have moved', async () => {
    const now = scene.now();
    const inDays = (days: number) =>
      new Date(now.getTime() + days * 24 * HOUR).toISOString().replace('.000Z', 'Z');
    const machine = (name: string, facts: Partial<MachineFacts> = {}) => offer('fsn1', name, { facts });
    await scene.organization('org');
    await scene.organization('beta');
    await scene.catalogue([
      region('fsn1'),
      machine('old', { retiresAt: inDays(180) }),
      machine('later', { retiresAt: inDays(181) }),
      // Existing machines of it stay.
      machine('unsold', { orderableUntil: inDays(1) }),
      machine('unused', { retiresAt: inDays(1) }),
      machine('new'),
    ]);
    const on = (name: string, fields: Parameters<typeof cluster>[1] = {}) => ({
      ...fields,
      region: { code: 'fsn1', name: 'fsn1' },
      machine: { name, cpu: 2, ram: 4, ramUnit: 'Binary' as const },
    });
    const others = [cluster('later', on('later')), cluster('unsold', on('unsold'))];
    const six = Array.from({ length: 5 }, (_, i) => cluster(`c${i}`, on('old')));
    await scene.clusters([...others, ...six, cluster('b', on('old', { organization: 'beta' }))]);
    expect(await evaluate(now)).toMatchObject({
      opened: [
        {
          kind: 'machine_retiring',
          subject: 'acme/fsn1/old',
          summary: `Acme retires old in fsn1 on ${inDays(180).slice(0, 10)}, and 6 clusters run on it: beta/b, org/c0, org/c1, org/c2, org/c3, …; move them to another machine`,
          details: { clusters: 6, retiresAt: inDays(180) },
        },
      ],
    });
    const moved = six.map((_, i) => cluster(`c${i}`, on('new')));
    await scene.clusters([...others, ...moved, cluster('b', on('new', { organization: 'beta' }))], {
      limits: LAX,
    });
    expect(await evaluate(now)).toMatchObject({ opened: [], resolved: [{ kind: 'machine_retiring' }] });
  });

  it('names the clusters on a version whose support ends soon or has ended, by cycle and by provider', async () => {
    await scene.catalogue(items(3));
    await scene.sql`update sources set verified_at = ${scene.now().toISOString()}`;
    const now = scene.now();
    const day = (days: number) => new Date(now.getTime() + days * 86_400_000).toISOString().slice(0, 10);
    await scene.organization('org');
    const on = (key: string, version: string, endOfLife?: string) =>
      cluster(key, {
        organization: 'org',
        disks: [],
        software: { engine: 'postgresql', version, ...(endOfLife && { endOfLife }) },
      });
    await scene.sql`insert into sources (id, kind, adapter) values ('lifecycles', 'lifecycles', 'endoflife')`;
    const setEnd = (name: string, end: string | null) => scene.sql`
      insert into lifecycles (source_id, engine, name, end_of_life, has_ended)
      values ('lifecycles', 'postgresql', ${name}, ${end}::text::date, false)
      on conflict (source_id, engine, name) do update set end_of_life = excluded.end_of_life`;
    await setEnd('13', day(-3));
    await setEnd('14', day(180));
    await setEnd('15', day(181));
    await setEnd('16', null);
    await scene.clusters([
      ...[on('a', '13.1'), on('b', '13.9'), on('c', '14'), on('d', '15'), on('e', '16'), on('f', '8')],
      on('g', '16.1', day(10)),
    ]);
    const { opened } = (await evaluate(now)) ?? expect.unreachable();
    const about = opened.filter(({ kind }) => kind === 'version_ending');
    expect(about.map(({ subject, summary }) => [subject, summary])).toEqual([
      [
        'Acme postgresql 16',
        `the support of Acme postgresql 16 ends on ${day(10)}, and 1 cluster runs it: org/g; upgrade them`,
      ],
      [
        'postgresql 13',
        `the support of postgresql 13 ended on ${day(-3)}, and 2 clusters run it: org/a, org/b; upgrade them`,
      ],
      [
        'postgresql 14',
        `the support of postgresql 14 ends on ${day(180)}, and 1 cluster runs it: org/c; upgrade them`,
      ],
    ]);
    await setEnd('13', day(400));
    expect(await evaluate(now)).toMatchObject({
      resolved: [{ kind: 'version_ending', subject: 'postgresql 13' }],
    });
  });

  it('opens for one unread region if the others were read', async () => {
    await scene.catalogue([region('fsn1'), region('hel1'), ...offers('fsn1', 2), ...offers('hel1', 2)]);
    await scene.sql`update region_freshness set verified_at = verified_at - interval '4 hours'
      where region_id = (select id from regions where code = 'hel1')`;
    expect(await evaluate(later(0))).toMatchObject({
      opened: [{ kind: 'region_stale', subject: 'acme/hel1' }],
    });
  });

  it('states the broken guards of a held batch, and the decision', async () => {
    await scene.catalogue(items(10));
    await scene.catalogue(items(2), { limits: STRICT });
    const [batch] = await pendingBatches(scene.store.db);
    expect(await evaluate()).toMatchObject({ opened: [{ kind: 'batch_held', subject: 'acme' }] });
    await decide(scene.store.db, batch?.id ?? 0, 'rejected', OPERATOR);
    expect(await evaluate()).toMatchObject({
      resolved: [{ resolution: 'rejected by ada@desk because it is right' }],
    });
    await send();
    const [opened] = messages()[0]?.data.alerts ?? [];
    expect(opened?.summary).toMatch(/^a batch of acme is held for a decision: .*10/);
    expect(opened?.details).toMatchObject({ decide: 'fleetbook hold show acme' });
  });

  it('states the limit and the current age of stale data', async () => {
    await scene.catalogue(items(3));
    const sources = [{ id: 'acme', kind: 'catalogue', maxAge: 120 }] as const;
    await scene.sql`update sources set verified_at = ${scene.now().toISOString()}`;
    const opened = await evaluate(later(7 / 60), {}, sources);
    expect(opened?.opened[0]?.summary).toMatch(
      /^acme was last read well at \S+Z: limit 2 min, now 7 min old$/,
    );
    await evaluate(later(3), {}, sources);
    const [record] = await alertRecords(scene.store.db, { isOpenOnly: true, limit: undefined });
    expect(record?.summary).toMatch(/: limit 2 min, now 3 h old$/);
  });

  it('opens for failures in a row, and not for fewer', async () => {
    await scene.catalogue(items(3));
    const fail = async () => {
      const run = await scene.begin();
      await finishRun(scene.store.db, run, 'failed', undefined, scene.now().toISOString(), 'answered 503');
    };
    await fail();
    await fail();
    expect(await evaluate()).toMatchObject({ opened: [] });
    await fail();
    expect(await evaluate()).toMatchObject({
      opened: [{ kind: 'source_failing', summary: 'acme has failed 3 times in a row: answered 503' }],
    });
    await scene.catalogue(items(3));
    expect(await evaluate()).toMatchObject({ resolved: [{ kind: 'source_failing' }] });
  });

  it('is sent once for a run that moved prices by more than the factor', async () => {
    await scene.catalogue(items(3));
    await scene.catalogue([region('fsn1'), ...offers('fsn1', 2, { amount: '0.12' }), ...items(3).slice(-1)], {
      limits: LAX,
    });
    // The runs have another clock than the scene.
    await scene.sql.begin(async (sql) => {
      await sql`update machine_prices set valid_to = now() where valid_to is not null`;
      await sql`update machine_prices new set valid_from = now() where valid_to is null
        and exists (select from machine_prices old where old.machine_id = new.machine_id and old.valid_to is not null)`;
    });
    const all = await Promise.all(Array.from({ length: 6 }, () => evaluate()));
    const [found, ...others] = all.filter((changes) => changes?.opened.length !== 0 && changes !== undefined);
    expect(others).toEqual([]);
    expect(found?.opened).toMatchObject([{ kind: 'prices_moved', subject: 'acme#2', details: { count: 2 } }]);
    expect(found?.opened[0]?.details).toMatchObject({
      first: [
        { machine: 'm1', region: 'fsn1', before: '0.06', after: '0.12', per: 'hour', currency: 'USD' },
        {},
      ],
    });
    expect(await evaluate()).toEqual({ opened: [], repeated: [], resolved: [] });
    expect(await evaluate(scene.now(), { priceRatio: 3 })).toMatchObject({ opened: [] });
    await scene.sql`delete from alerts`;
    expect(await evaluate()).toMatchObject({ opened: [{ kind: 'prices_moved' }] });
    await scene.sql`delete from alerts`;
    await scene.sql`update sync_runs set cause = 'decision' where id = 2`;
    expect(await evaluate(), 'an operator approved these prices').toMatchObject({ opened: [] });
  });

  it('is sent once with counts for a run that flips the stock of a whole source, which shows at once', async () => {
    const flip = (...soldOut: string[]) =>
      Object.entries({ fsn1: 6, nbg1: 4 }).flatMap(([code, count]) => [
        region(code),
        ...offers(code, count, soldOut.includes(code) ? { excluded: 'sold_out' } : {}),
      ]);
    const flipped = { kind: 'stock_flipped', resolvedAt: expect.anything() };
    const opened = async () =>
      (await evaluate())?.opened.filter(({ kind }) => kind === 'stock_flipped') ?? expect.unreachable();
    await scene.catalogue(flip());
    expect(await opened()).toEqual([]);
    // A part of the provider has its own alerts, one for each region.
    await scene.catalogue(flip('fsn1'));
    expect(await opened()).toEqual([]);
    await scene.catalogue(flip());
    expect(await opened()).toMatchObject([
      { ...flipped, details: { to: 'available', changed: 6, machines: 10, now: 10, regions: 1 } },
    ]);
    expect(await scene.catalogue(flip('fsn1', 'nbg1'))).toMatchObject({ outcome: 'changed', broken: [] });
    const all = await Promise.all(Array.from({ length: 3 }, () => evaluate()));
    expect(
      all.flatMap((changes) => changes?.opened ?? []).filter(({ kind }) => kind === 'stock_flipped'),
    ).toMatchObject([
      {
        ...flipped,
        subject: 'acme#4',
        summary: '10 of 10 machines of acme are sold out: run 4 changed 10 of them at once',
        details: { source: 'acme', run: 4, to: 'sold_out', changed: 10, machines: 10, now: 10, regions: 2 },
      },
    ]);
    expect(await opened()).toEqual([]);
    await scene.catalogue(flip());
    expect(await opened()).toMatchObject([{ subject: 'acme#5', details: { to: 'available', changed: 10 } }]);
  });

  it('does not count a region that only a cluster has named, since it is never published', async () => {
    await scene.catalogue(items(3));
    const id = await scene.organization('org');
    await scene.sql`insert into regions (provider_id, code, name, organization_id)
      select ${ACME.id}, 'own-' || i, 'Own', ${id} from generate_series(1, 50) i`;
    await evaluate(scene.now(), { backlog: 20 });
    expect(await scene.sql`select from alerts`).toHaveLength(0);
  });

  it('about a backlog opens after five minutes, and is dropped if the backlog ends earlier', async () => {
    await scene.catalogue(items(3));
    const behind = () => evaluate(scene.now(), { backlog: 1 });
    expect(await behind()).toEqual({ opened: [], repeated: [], resolved: [] });
    expect(await evaluate(scene.now(), { backlog: 1000 })).toEqual({
      opened: [],
      repeated: [],
      resolved: [],
    });
    expect(await scene.sql`select from alerts`).toHaveLength(0);
    await behind();
    await scene.sql`update alerts set opened_at = now() - interval '5 minutes 1 second'`;
    expect(await behind()).toMatchObject({ opened: [{ kind: 'publication_behind', subject: 'cache' }] });
    expect(await evaluate(scene.now(), { backlog: 1000 })).toMatchObject({
      resolved: [{ subject: 'cache' }],
    });
  });

  it('about differences of the cache is one for all documents, and ends an hour after the last one', async () => {
    const note = (document: string, cached: number) =>
      recordDifference(scene.store.db, { document, verdict: 'different', version: 7, cached });
    for (let region = 1; region <= 7; region++) await note(`region:${region}`, 7);
    await note('region:3', 5);
    const changes = await evaluate();
    expect(changes?.opened).toMatchObject([
      {
        kind: 'cache_differs',
        subject: 'cache',
        summary: expect.stringMatching(/^the cache differed from the database in 7 documents/),
        details: {
          documents: 7,
          first: [{ document: 'region:3', version: 7, cached: 5, times: 2 }, {}, {}, {}, {}],
        },
      },
    ]);
    await scene.sql`update cache_differences set found_at = now() - interval '59 minutes'`;
    expect(await evaluate()).toEqual({ opened: [], repeated: [], resolved: [] });
    await scene.sql`update cache_differences set found_at = now() - interval '61 minutes'`;
    expect(await evaluate()).toMatchObject({ opened: [], resolved: [{ kind: 'cache_differs' }] });
    await scene.sql`update cache_differences set found_at = now() - interval '91 days' where document <> 'region:3'`;
    await pruneDifferences(scene.store.db);
    expect(await scene.sql`select document from cache_differences`).toEqual([{ document: 'region:3' }]);
  });

  it('is evaluated by one worker at a time, and sent once', async () => {
    await scene.catalogue(items(3));
    const all = await Promise.all(Array.from({ length: 6 }, () => evaluate(later(4))));
    expect(all.flatMap((changes) => changes?.opened ?? [])).toHaveLength(1);
    expect(await deliveryRecords()).toHaveLength(1);
  });

  it('shares one message with the alerts of the same time', async () => {
    const many = Array.from({ length: 30 }, (_, i) => `r${i}`);
    await scene.catalogue([...many.map((code) => region(code)), ...many.flatMap((code) => offers(code, 1))]);
    await scene.sql`update region_freshness set verified_at = verified_at - interval '4 hours' where region_id > 1`;
    await evaluate();
    await send();
    expect(messages()).toHaveLength(1);
    expect(messages()[0]?.data.alerts).toHaveLength(29);
  });
});

describe('a webhook', () => {
  const open = async (hours: number) => {
    await scene.catalogue(items(3));
    await evaluate(later(hours));
  };

  it('gets messages with the signature of standardwebhooks.com', async () => {
    await open(4);
    await send();
    const [{ headers, text } = { headers: {}, text: '' }] = hook.taken;
    const [id, at] = [headers['webhook-id'], headers['webhook-timestamp']];
    expect(id).toMatch(/^msg_\w+$/);
    expect(Math.abs(Number(at) - Date.now() / 1000)).toBeLessThan(60);
    const signature = createHmac('sha256', SECRET).update(`${id}.${at}.${text}`).digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${signature}`);
    expect(kinds(messages()[0])).toEqual(['source_stale acme']);
  });

  it('gets a text in Slack’s format, where text of an upstream is neither link nor mention', async () => {
    await scene.sql`insert into sources (id, kind, adapter, registered_at) values ('<!here>&', 'catalogue', 'test', ${later(-9).toISOString()})`;
    await evaluate(scene.now(), {}, [{ id: '<!here>&', kind: 'catalogue', maxAge: 60 }]);
    await send(webhook({ format: 'slack', secret: undefined }));
    const { text } = JSON.parse(hook.taken[0]?.text ?? '{}') as { text: string };
    expect(text).toContain('*Fleetbook: new alert*\n• &lt;!here&gt;&amp; was never read well');
    expect(text).toContain('\n    `fleetbook source show &lt;!here&gt;&amp;`');
    expect(hook.taken[0]?.headers['webhook-signature']).toBeUndefined();
  });

  it('gets a link to the console and the command for each alert', async () => {
    await scene.catalogue(items(10));
    await scene.catalogue(items(2), { limits: STRICT });
    const [batch] = await pendingBatches(scene.store.db);
    const webhooks = [webhook(), webhook({ id: 'chat', format: 'slack', secret: undefined })];
    await evaluate(scene.now(), { opsUrl: 'https://ops.test', webhooks });
    await send();
    const url = `https://ops.test/held/${batch?.id}`;
    const command = 'fleetbook hold show acme';
    expect(messages()[0]?.data.alerts).toMatchObject([{ url, command }]);
    await send(webhooks[1]);
    expect(JSON.parse(hook.taken[1]?.text ?? '{}').text).toContain(`\n    ${url} · \`${command}\``);
    await decide(scene.store.db, batch?.id ?? 0, 'approved', OPERATOR);
    await evaluate(scene.now(), { webhooks });
    await send();
    expect(messages().at(-1)?.data.alerts).toMatchObject([{ url: null }]);
  });

  it('gets only the kinds of its configuration', async () => {
    const webhooks = [webhook({ id: 'held', kinds: ['batch_held'] }), webhook({ id: 'all' })];
    await scene.catalogue(items(3));
    await evaluate(later(4), { webhooks });
    expect((await deliveryRecords()).map((each) => each.webhook)).toEqual(['all']);
  });

  it('that does not answer for an hour gets each message once and in order, also from two workers', async () => {
    hook.status = 503;
    for (let turn = 0; turn < 4; turn++) {
      await scene.catalogue(items(3));
      await evaluate(later(4));
      await endPauses();
      expect(await send()).toBe(15_000 * 2 ** turn);
      // A webhook gets no message during its pause.
      expect(await send()).toBeUndefined();
      await scene.catalogue(items(3));
      await evaluate();
    }
    const waiting = await deliveryRecords();
    expect(waiting).toHaveLength(8);
    expect(waiting.at(-1)).toMatchObject({ state: 'waiting', attempts: 4, lastError: 'it answered 503' });
    // The first message is attempted, and the others wait for it.
    expect(hook.requestCount).toBe(4);

    hook.status = 200;
    await endPauses();
    await Promise.all(Array.from({ length: 4 }, () => send()));
    await send();
    const ids = hook.taken.map(({ headers }) => headers['webhook-id']);
    expect(ids).toEqual(waiting.map(({ messageId }) => messageId).reverse());
    expect(messages().map(({ type }) => type)).toEqual(
      Array.from({ length: 4 }, () => ['alerts.opened', 'alerts.resolved']).flat(),
    );
    expect(await dueRecipients(scene.store.db)).toEqual([]);
  });

  it('that hangs or does not answer delays no other one, and its address is not logged', async () => {
    const gone = webhook({ id: 'gone', url: `http://127.0.0.1:${await freePort()}/secret-path` });
    await scene.catalogue(items(3));
    await evaluate(later(4), { webhooks: [gone, webhook()] });
    expect(await send(gone)).toBe(15_000);
    expect(await send()).toBeUndefined();
    expect(hook.taken).toHaveLength(1);
    const records = JSON.stringify(await deliveryRecords());
    expect(records).toContain('it could not be reached (ECONNREFUSED)');
    expect(records).not.toContain('secret-path');
    expect(await dueRecipients(scene.store.db)).toEqual([]);
  });

  it('loses no message of an old backlog if the worker stops while it sends', async () => {
    await open(4);
    await open(5);
    await scene.sql`update messages set created_at = now() - interval '73 hours'`;
    const stopped = AbortSignal.abort();
    const logger = pino({ level: 'silent' });
    expect(
      await deliver({
        db: scene.store.db,
        recipient: operatorsRecipient(webhook()),
        logger,
        signal: stopped,
      }),
    ).toBeUndefined();
    const waiting = await deliveryRecords();
    expect(waiting.length).toBeGreaterThan(0);
    for (const record of waiting) expect(record).toMatchObject({ state: 'waiting', attempts: 0 });
    await send();
    expect(hook.taken).toHaveLength(waiting.length);
  });

  it('loses a message after three days, and gets those after it', async () => {
    hook.status = 500;
    await open(4);
    await scene.sql`update messages set created_at = now() - interval '73 hours'`;
    await send();
    expect(await deliveryRecords()).toMatchObject([{ state: 'given up', attempts: 1 }]);
    hook.status = 200;
    const [first] = await deliveryRecords(1);
    expect(await sendAgain(scene.store.db, first?.id ?? 0, OPERATOR)).toBe('ops');
    await send();
    expect(hook.taken[0]?.headers['webhook-id']).toBe(first?.messageId);
  });
});
