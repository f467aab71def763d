import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { confirmRetirement } from '../../src/cli/sources/source.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { hetzner } from '../support/provider-answers.ts';
import { startTestRedis } from '../support/redis.ts';
import { runCommand } from '../support/run-command.ts';

const NAMES = ['cx11', 'cx21', 'cx31'];

const closing = new AsyncDisposableStack();
let env: Record<string, string>;
beforeAll(async () => {
  const database = closing.use(await createDatabase());
  const redis = closing.use(await startTestRedis());
  env = { DATABASE_URL: database.url, REDIS_URL: redis.url, CATALOGUE_CURRENCY: 'EUR' };
});
afterAll(() => closing.disposeAsync());

async function sync() {
  await using upstream = await fakeUpstream();
  hetzner(upstream, [{ names: NAMES }], NAMES.length);
  return await runCommand(['sync', 'hetzner'], { ...env, HETZNER_URL: upstream.url });
}
const retire = (...options: string[]) => runCommand(['source', 'retire', 'hetzner', ...options], env);
const status = async () => {
  const { code, stdout, stderr } = await runCommand(['status', '--json'], env);
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout)[0];
};

it('an unconfigured source is named, and is retired by its command', {
  timeout: 240_000,
}, async () => {
  expect((await sync()).code).toBe(0);
  expect(JSON.parse((await runCommand(['audit', '--json'], env)).stdout).rows).toMatchObject([
    { action: 'source.run', how: 'cli', subject: { kind: 'source', id: 'hetzner' }, details: { run: 1 } },
  ]);
  expect((await runCommand(['runs', 'hetzner'], env)).stdout).toMatch(/\n1: by hand, by \S+@\S+\n$/);
  expect((await runCommand(['run', '1'], env)).stdout.replaceAll('\n  ', ' ')).toMatch(
    /, by hand, by \S+@\S+\n/,
  );
  // Long notes are wrapped.
  expect((await runCommand(['status'], env)).stdout.replaceAll('\n  ', ' ')).toMatch(
    /\nhetzner: not configured here: its 3 machines are still published, and it was last read \d+ (?:s|min) ago; unless another worker has it, configure it again or remove its data: fleetbook source retire hetzner\n/,
  );
  expect(await status()).toMatchObject({
    configured: false,
    regions: [{ code: 'fsn1', verifiedAt: expect.any(String), unreadSince: null }],
  });

  const configured = await runCommand(['source', 'retire', 'hetzner', '--yes'], {
    ...env,
    HETZNER_URL: 'http://127.0.0.1:1',
  });
  expect(configured).toMatchObject({ code: 2, stderr: expect.stringContaining('"hetzner" is configured') });

  const unconfirmed = await retire();
  expect(unconfirmed.code).toBe(2);
  expect(unconfirmed.stdout).toMatch(/^hetzner: 3 machines in 1 region would be unpublished \(last read/);
  expect(unconfirmed.stdout).toMatch(/\nREGION {8}MACHINES {2}PUBLISHED\nHetzner fsn1 {2}3 {9}3\n/);
  expect(unconfirmed.stderr).toContain('fleetbook source retire hetzner --yes');
  const asJson = await retire('--json');
  expect([asJson.code, JSON.parse(asJson.stdout)]).toEqual([
    2,
    expect.objectContaining({ retired: false, places: [{ place: 'Hetzner fsn1', known: 3, published: 3 }] }),
  ]);
  expect(await status()).toMatchObject({ published: 3 });

  const done = await retire('--yes', '--json');
  expect([done.code, JSON.parse(done.stdout)]).toEqual([
    0,
    expect.objectContaining({ source: 'hetzner', retired: true, published: true }),
  ]);
  expect(await status()).toMatchObject({
    published: 0,
    known: 0,
    retiredAt: expect.any(String),
    regions: [],
  });
  expect((await retire()).stdout).toMatch(
    /^hetzner: none of its data is published; it was retired \d+ (?:s|min) ago\n$/,
  );
  expect((await runCommand(['status'], env)).stdout).toMatch(
    /\nhetzner: retired \d+ (?:s|min) ago; none of its data/,
  );
  expect(await runCommand(['source', 'retire', 'linode'], env)).toMatchObject({
    code: 2,
    stderr: 'fleetbook: there is no source "linode"; stored sources: hetzner\n',
  });

  expect((await sync()).stdout).toMatch(/^hetzner: changed: 3 rows, 3 new/);
  const prices = JSON.parse((await runCommand(['prices', '1', '--json'], env)).stdout);
  expect(prices.prices).toHaveLength(2);
});

it('a source is disabled with operator and reason, is then not synced by command, and is enabled again', {
  timeout: 240_000,
}, async () => {
  const on = { ...env, HETZNER_URL: 'http://127.0.0.1:1' };
  const unknown = await runCommand(['source', 'disable', 'linode'], on);
  expect(unknown).toMatchObject({
    code: 2,
    stderr: 'fleetbook: there is no source "linode"; known sources: hetzner\n',
  });
  const args = ['--by', 'ada@desk', '--reason', 'prices are wrong'];
  const disabled = await runCommand(['source', 'disable', 'hetzner', ...args, '--json'], on);
  expect([disabled.code, JSON.parse(disabled.stdout)]).toEqual([
    0,
    {
      source: 'hetzner',
      changed: true,
      disabled: { at: expect.stringMatching(/Z$/), by: 'ada@desk', reason: 'prices are wrong' },
    },
  ]);
  expect((await runCommand(['source', 'disable', 'hetzner', '--by', 'bob'], on)).stdout).toMatch(
    /^hetzner: is already disabled: \d+ (?:s|min) ago by ada@desk \(prices are wrong\)\n$/,
  );
  expect(await runCommand(['sync', 'hetzner'], on)).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /^fleetbook: source "hetzner" was disabled at \S+ by ada@desk \(prices are wrong\); to read it again: fleetbook source enable hetzner\n$/,
    ),
  });
  const shown = JSON.parse((await runCommand(['status', '--json'], on)).stdout)[0];
  expect(shown).toMatchObject({ published: 3, nextSlot: null, disabled: { by: 'ada@desk' } });

  const enabled = await runCommand(['source', 'enable', 'hetzner'], on);
  expect(enabled.stdout).toMatch(/^hetzner: enabled: .* the next one is at \d{4}-\S+Z\. To read it now:/);
  expect((await runCommand(['source', 'enable', 'hetzner'], on)).stdout).toBe('hetzner: is not disabled\n');
  expect(await runCommand(['source', 'enable', 'linode'], on)).toMatchObject({ code: 2, stdout: '' });
  expect((await sync()).stdout).toMatch(/^hetzner: unchanged: 3 rows/);
});

it('is not confirmed by any other answer than yes', async () => {
  const answered = async (answer: string) => {
    const input = Object.assign(new PassThrough(), { isTTY: true });
    input.write(`${answer}\n`);
    await confirmRetirement('hetzner', input, new PassThrough());
  };
  await answered('yes');
  await expect(answered('n')).rejects.toThrow('nothing was retired');
  await expect(answered('')).rejects.toThrow('nothing was retired');
});
