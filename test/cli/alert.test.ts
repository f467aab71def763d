import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Receiver, receiver } from '../alerts/receiver.ts';
import { type CommandScene, openCommandScene } from '../support/command-scene.ts';
import { fleetbook } from '../support/fleetbook.ts';

describe('fleetbook alert', () => {
  let here: CommandScene;
  let hook: Receiver;
  beforeAll(async () => {
    [here, hook] = await Promise.all([openCommandScene(), receiver()]);
    const { sql } = here.scene;
    await sql`insert into alerts (key, kind, subject, summary, details, told_at)
      values ('source_stale:acme', 'source_stale', 'acme', 'acme was never read well', '{}', now())`;
    await sql`insert into alerts (key, kind, subject, summary, details, told_at, resolved_at, resolution)
      values ('batch_held:acme', 'batch_held', 'acme', 'a batch is held', '{}', now(), now(), 'rejected by ada')`;
    await sql`insert into alert_deliveries (webhook, message_id, body, attempts, last_error)
      values ('ops', 'msg_1', '{"type":"alerts.opened"}', 2, 'it answered 503')`;
  });
  afterAll(() => Promise.all([here[Symbol.asyncDispose](), hook[Symbol.asyncDispose]()]));
  const alert = (args: string[], env: Record<string, string> = {}) =>
    fleetbook(['alert', ...args], { ...here.env, ...env });

  it('lists what is open, and what was', async () => {
    expect((await alert(['list'])).stdout).toMatch(
      /^1 source_stale, open since \d+ s ago: acme was never read well\n$/,
    );
    expect((await alert(['list', '--closed'])).stdout).toMatch(
      /2 batch_held, resolved \d+ s ago: .* \(rejected by ada\)/,
    );
    expect(JSON.parse((await alert(['list', '--json'])).stdout)).toMatchObject([
      { subject: 'acme', resolvedAt: null },
    ]);
  });

  it('lists what was sent and how that went, and sends it again', async () => {
    expect((await alert(['deliveries'])).stdout).toMatch(
      /^1 +ops +alerts\.opened +\d+ s ago +waiting +2 +it answered 503; next at \d\d:\d\d UTC$/m,
    );
    expect(await alert(['resend', '1'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('sent again to ops'),
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

  it('tries a webhook, and says why it did not work', async () => {
    const env = { ALERT_WEBHOOK_URL: hook.url };
    expect(await alert(['test', 'default'], env)).toMatchObject({
      code: 0,
      stdout: 'webhook default took the message\n',
    });
    expect(JSON.parse(hook.taken[0]?.text ?? '{}')).toMatchObject({ type: 'alerts.test' });
    hook.status = 404;
    expect(await alert(['test', 'default'], env)).toMatchObject({
      code: 1,
      stderr: 'fleetbook: webhook default did not take the message: it answered 404\n',
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
