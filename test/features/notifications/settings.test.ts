import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FEATURE_CONFIG } from '../../../src/app/feature-config.ts';
import { readConfig } from '../../../src/config/config.ts';
import { alertRules } from '../../../src/features/notifications/rules.ts';

const DATABASE = { DATABASE_URL: 'postgres://127.0.0.1/x', REDIS_URL: 'redis://127.0.0.1' };
const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;

async function read(alerts: unknown, env: Record<string, string> = {}) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-alerts-'));
  const path = join(folder.path, 'fleetbook.json');
  await writeFile(path, JSON.stringify({ alerts }));
  return alertRules(readConfig({ ...DATABASE, FLEETBOOK_CONFIG: path, ...env }, FEATURE_CONFIG));
}

describe('alerts', () => {
  it('have rules, and no receiver unless a webhook is configured', () => {
    expect(alertRules(readConfig(DATABASE, FEATURE_CONFIG))).toEqual({
      webhooks: [],
      failuresInRow: 3,
      priceRatio: 1.5,
      backlog: 100,
      repeatHours: 24,
    });
  });

  it('go to the webhook of the environment and to those of the file', async () => {
    const webhooks = [{ id: 'chat', urlEnv: 'CHAT_URL', format: 'slack', kinds: ['batch_held'] }];
    const env = {
      ALERT_WEBHOOK_URL: 'https://a.example',
      ALERT_WEBHOOK_SECRET: SECRET,
      CHAT_URL: 'https://b.example',
    };
    expect(await read({ webhooks, repeatHours: 6 }, env)).toMatchObject({
      repeatHours: 6,
      failuresInRow: 3,
      webhooks: [
        {
          id: 'default',
          url: 'https://a.example',
          secret: Buffer.alloc(32, 1),
          format: 'standard',
          kinds: undefined,
        },
        { id: 'chat', url: 'https://b.example', secret: undefined, format: 'slack', kinds: ['batch_held'] },
      ],
    });
  });

  it.each([
    [
      'a missing address',
      { webhooks: [{ id: 'a', urlEnv: 'NOT_SET' }] },
      {},
      /webhook "a": urlEnv names NOT_SET/,
    ],
    [
      'an unknown kind',
      { webhooks: [{ id: 'a', urlEnv: 'A', kinds: ['x'] }] },
      {},
      /alerts\.webhooks\.0\.kinds\.0/,
    ],
    ['an invalid factor', { priceRatio: 1 }, {}, /alerts\.priceRatio/],
    [
      'a repeated id',
      { webhooks: [1, 2].map(() => ({ id: 'a', urlEnv: 'A' })) },
      { A: 'https://a.example' },
      /webhook "a" is listed twice/,
    ],
    [
      'the environment’s id',
      { webhooks: [{ id: 'default', urlEnv: 'A' }] },
      { A: 'https://a.example', ALERT_WEBHOOK_URL: 'https://b.example' },
      /webhook "default" has the id of ALERT_WEBHOOK_URL/,
    ],
    [
      'an invalid secret',
      { webhooks: [{ id: 'a', urlEnv: 'A', secretEnv: 'S' }] },
      { A: 'https://a.example', S: 'short' },
      /webhook "a": S must be whsec_ and the base64 of 24 to 64 bytes/,
    ],
    [
      'a secret of the environment',
      {},
      { ALERT_WEBHOOK_SECRET: SECRET },
      /ALERT_WEBHOOK_SECRET has no effect without/,
    ],
  ])('report %s by name', async (_, alerts, env, problem) => {
    await expect(read(alerts, env as Record<string, string>)).rejects.toThrow(problem);
  });
});
