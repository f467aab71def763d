import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandScene, openCommandScene } from '../../cli/scene.ts';
import { runCommand } from '../../support/run-command.ts';
import { type Receiver, receiver } from './webhook-receiver.ts';

describe('fleetbook alert', () => {
  let here: CommandScene;
  let hook: Receiver;
  beforeAll(async () => {
    [here, hook] = await Promise.all([openCommandScene(), receiver()]);
    const { sql } = here.scene;
    await sql`insert into alerts (key, kind, subject, summary, details, notified_at)
      values ('source_stale:acme', 'source_stale', 'acme', 'acme was never read well', '{}', now())`;
    await sql`insert into alerts (key, kind, subject, summary, details, notified_at, resolved_at, resolution)
      values ('batch_held:acme', 'batch_held', 'acme', 'a batch is held', '{}', now(), now(), 'rejected by ada')`;
    await sql`insert into messages (receiver, message_id, body, attempts, last_error)
      values ('ops', 'msg_1', '{"type":"alerts.opened"}', 2, 'it answered 503')`;
  });
  afterAll(() => Promise.all([here[Symbol.asyncDispose](), hook[Symbol.asyncDispose]()]));
  const alert = (args: string[], env: Record<string, string> = {}) =>
    runCommand(['alert', ...args], { ...here.env, ...env });

  it('lists open alerts, and resolved ones on request', async () => {
    expect((await alert(['list'])).stdout).toMatch(
      /^1 source_stale, open since \d+ (?:s|min) ago: acme was never read well\n$/,
    );
    expect((await alert(['list', '--closed'])).stdout).toMatch(
      /2 batch_held, resolved \d+ (?:s|min) ago: .* \(rejected by ada\)/,
    );
    expect(JSON.parse((await alert(['list', '--json'])).stdout)).toMatchObject([
      { subject: 'acme', resolvedAt: null },
    ]);
  });

  it('acknowledges and snoozes an open alert with a reason', async () => {
    const because = ['--reason', 'the provider repairs it', '--by', 'ada'];
    expect(await alert(['acknowledge', '1', ...because])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^alert 1 source_stale acme is acknowledged by ada \d+ (?:s|min) ago: the provider repairs it\n$/,
      ),
    });
    expect((await alert(['list'])).stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /acme was never read well \(acknowledged by ada \d+ (?:s|min) ago: the provider repairs it\)/,
    );
    const snoozed = await alert(['snooze', '1', '--for', '4h', ...because, '--json']);
    expect(JSON.parse(snoozed.stdout)).toMatchObject({
      alert: 1,
      kind: 'source_stale',
      acknowledgement: { by: 'ada', until: expect.stringMatching(/Z$/) },
    });
    await here.scene.sql`insert into sources (id, kind, adapter) values ('acme', 'catalogue', 'test')
      on conflict do nothing`;
    const status = await runCommand(['status'], here.env);
    expect(status.stdout.replaceAll(/\s+/g, ' ')).toMatch(
      /acme: alert 1 source_stale is snoozed by ada until \S+ \d\d:\d\d UTC: the provider repairs it/,
    );
    expect(JSON.parse((await runCommand(['status', '--json'], here.env)).stdout)).toContainEqual(
      expect.objectContaining({ id: 'acme', acknowledgedAlerts: [expect.objectContaining({ id: 1 })] }),
    );
    for (const [args, code, stderr] of [
      [['acknowledge', '1'], 2, /--reason/],
      [['acknowledge', '1', '--reason', 'x'.repeat(501)], 2, /one line of 1 to 500 characters/],
      [['acknowledge', '2', ...because], 1, /alert 2 is resolved/],
      [['acknowledge', '99', ...because], 1, /there is no alert 99; see: fleetbook alert list/],
      [['snooze', '1', ...because], 2, /--for/],
      [['snooze', '1', '--for', '31d', ...because], 2, /at most 30d; it is "31d"/],
    ] as const)
      expect(await alert([...args])).toMatchObject({ code, stderr: expect.stringMatching(stderr) });
  });

  it('lists messages with their results, and sends one again', async () => {
    expect((await alert(['deliveries'])).stdout).toMatch(
      /^1 +ops +alerts\.opened +\d+ (?:s|min) ago +waiting +2 +it answered 503; next at \d\d:\d\d UTC$/m,
    );
    expect(await alert(['resend', '1'])).toMatchObject({
      code: 0,
      stdout: 'a worker sends delivery 1 to ops again within a minute\n',
    });
    expect(JSON.parse((await alert(['deliveries', '--json'])).stdout)).toMatchObject([
      { id: 2, messageId: 'msg_1', state: 'waiting', attempts: 0 },
      { id: 1, messageId: 'msg_1' },
    ]);
    expect(await alert(['resend', '99'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('alert deliveries'),
    });
    expect(await alert(['resend', 'x'])).toMatchObject({ code: 2 });
  });

  it('tests a webhook, and prints the error', async () => {
    const env = { ALERT_WEBHOOK_URL: hook.url };
    expect(await alert(['test', 'default'], env)).toMatchObject({
      code: 0,
      stdout: 'webhook default accepted the message\n',
    });
    expect(JSON.parse(hook.taken[0]?.text ?? '{}')).toMatchObject({ type: 'alerts.test' });
    hook.status = 404;
    expect(await alert(['test', 'default'], env)).toMatchObject({
      code: 1,
      stderr: 'fleetbook: webhook default did not accept the message: it answered 404\n',
    });
    expect(await alert(['test', 'other'], env)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('give one of default'),
    });
    expect(await alert(['test', 'other'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('ALERT_WEBHOOK_URL'),
    });
  });
});
