import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SAMPLE_HETZNER_TOKEN, startSampleUpstream } from '../../src/dev/sample/upstream.ts';
import { isWellFormedToken } from '../../src/domain/token.ts';
import { fleetbook } from '../support/fleetbook.ts';
import { createDatabase } from '../support/postgres.ts';
import { startTestRedis } from '../support/redis.ts';
import { runCommand } from '../support/run-command.ts';

// Each of them ends by itself as a process once. The rest of what they print needs no process.
describe('the commands', () => {
  const closing = new AsyncDisposableStack();
  let env: Record<string, string>;
  let redis: Awaited<ReturnType<typeof startTestRedis>>;

  beforeAll(async () => {
    const database = closing.use(await createDatabase());
    redis = closing.use(await startTestRedis());
    const sample = closing.use(await startSampleUpstream());
    env = {
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      HETZNER_URL: sample.hetznerUrl,
      HETZNER_TOKEN: SAMPLE_HETZNER_TOKEN,
      CLUSTERS_URL: sample.clustersUrl,
      CATALOGUE_RATES: 'EUR:1.1750',
    };
  });
  afterAll(() => closing.disposeAsync());

  it('creates an organization once, and reports a used slug', async () => {
    const made = await fleetbook(['org', 'create', 'sample', '--name', 'Sample'], env);
    expect(made).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('organization sample (id 1) is created'),
    });
    const again = await runCommand(['org', 'create', 'sample'], env);
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('the slug "sample" is taken') });
  });

  it('prints only a new token on standard output, and its id on standard error', async () => {
    const { code, stdout, stderr } = await fleetbook(
      ['token', 'create', '--org', 'sample', '--expires', '90d'],
      env,
    );
    expect(code).toBe(0);
    expect(isWellFormedToken(stdout.trim())).toBe(true);
    expect(stderr).toMatch(/^token 1 of sample, machines:read clusters:read, until /);
    expect(stderr).not.toContain(stdout.trim());
  });

  it('revokes a token by its id, and distinguishes a token from an id', async () => {
    expect(await runCommand(['token', 'delete', '1'], env)).toMatchObject({
      code: 0,
      stdout: 'token 1 is revoked\n',
    });
    expect((await runCommand(['token', 'delete', '1'], env)).stdout).toBe('token 1 is already revoked\n');
    expect(await runCommand(['token', 'delete', '77'], env)).toMatchObject({ code: 1 });
    expect(await runCommand(['token', 'delete', 'fb_x'], env)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('not the token'),
    });
  });

  it('reports before the first run that a source never ran', async () => {
    const { stdout } = await runCommand(['status', '--json'], env);
    expect(JSON.parse(stdout)).toMatchObject([
      {
        id: 'hetzner',
        kind: 'catalogue',
        lastRun: null,
        published: 0,
        nextSlot: expect.stringMatching(/Z$/),
      },
      { id: 'clusters', kind: 'clusters', lastRun: null },
    ]);
  });

  it('syncs a source, reports its result, and finds nothing the second time', async () => {
    const first = await fleetbook(['sync', 'hetzner'], env);
    expect(first).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^hetzner: changed: \d+ rows, \d+ new, 0 changed/),
    });
    const second = await runCommand(['sync', 'hetzner'], env);
    expect(second).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^hetzner: unchanged: \d+ rows, 0 new/),
    });
    expect((await runCommand(['sync', 'clusters'], env)).code).toBe(0);
    const { stdout } = await runCommand(['status', '--json'], env);
    expect(JSON.parse(stdout)).toMatchObject([
      { id: 'hetzner', lastRun: { outcome: 'unchanged', error: null }, held: 0 },
      { id: 'clusters', known: 5, lastRun: { outcome: 'changed' } },
    ]);
    const shown = await fleetbook(['status'], env);
    expect(shown.stdout).toMatch(/^SOURCE +LAST RUN +OUTCOME/);
  });

  it('has nothing to publish after that, and everything after a flush', async () => {
    expect((await runCommand(['publish'], env)).stdout).toBe('the cache equals the database\n');
    await redis.restart();
    expect((await fleetbook(['publish'], env)).stdout).toMatch(/^published \d+ documents\n$/);
  });

  it('states briefly why a source cannot be read, and records it', async () => {
    const wrong = { ...env, HETZNER_TOKEN: 'wrong' };
    const { code, stderr } = await fleetbook(['sync', 'hetzner'], wrong);
    expect(code).toBe(1);
    const lines = stderr.trim().split('\n');
    expect(lines.length).toBeLessThan(4);
    expect(lines.every((line) => line.startsWith('fleetbook: ') && line.length <= 80)).toBe(true);
    expect(stderr).toContain('401');
    expect(stderr).not.toContain('wrong');
    const { stdout } = await runCommand(['status', '--json'], env);
    expect(JSON.parse(stdout)[0]).toMatchObject({
      lastRun: { outcome: 'failed', error: expect.stringContaining('401') },
    });
  });

  it('rejects the sample in a database of live data', async () => {
    const { code, stderr } = await runCommand(['sync', 'hetzner'], { ...env, FLEETBOOK_CONTENT: 'sample' });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('this database holds live data and the sample must not mix with it'),
    });
  });

  it('stores a token while the cache is away, for the worker to publish', async () => {
    const away = { ...env, REDIS_URL: 'redis://127.0.0.1:1' };
    const { code, stdout } = await runCommand(['token', 'create', '--org', 'sample'], away);
    expect({ code, good: isWellFormedToken(stdout.trim()) }).toEqual({ code: 0, good: true });
  });
});

describe('wrong usage ends with code 2 and one line that names the accepted values', () => {
  it.each([
    [['frobnicate'], {}, /unknown command 'frobnicate'/],
    [['token', 'create'], {}, /required option '--org <slug>'/],
    [
      ['token', 'create', '--org', 'a', '--scope', 'write'],
      {},
      /"write" is not a scope; use machines:read or clusters:read/,
    ],
    [
      ['token', 'create', '--org', 'a', '--expires', 'soon'],
      {},
      /--expires "soon" is not a time; use e\.g\. 90d/,
    ],
    [['org', 'create', 'Not A Slug'], {}, /"Not A Slug" is not a slug/],
    [['migrate'], {}, /DATABASE_URL is not set; give postgres:/],
    [['serve'], { PORT: 'http' }, /PORT must be a port from 0 to 65535; it is "http"/],
    [
      ['sync', 'hetzner'],
      { DATABASE_URL: 'postgres://x@127.0.0.1/x', REDIS_URL: 'redis://x' },
      /no source is configured/,
    ],
    [
      ['work'],
      { DATABASE_URL: 'mysql://secret@x/y' },
      /DATABASE_URL must be a URL that starts with postgres:/,
    ],
    [['work'], { HETZNER_URL: 'ftp://x' }, /HETZNER_URL must be a URL that starts with http/],
    [
      ['work'],
      { HETZNER_URL: 'http://x', HETZNER_SCHEDULE: 'often' },
      /schedule of source "hetzner" must have five cron fields/,
    ],
  ])('%j %j', async (args, env: Record<string, string>, message) => {
    const { code, stderr, stdout } = await runCommand(args, env);
    expect({ code, stdout, lines: stderr.trim().split('\n').length }).toEqual({
      code: 2,
      stdout: '',
      lines: 1,
    });
    expect(stderr).toMatch(message);
    expect(stderr).not.toContain('secret');
  });

  it('also as a process', async () => {
    const { code, stderr, stdout } = await fleetbook(['serve'], { PORT: 'http' });
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: 'fleetbook: PORT must be a port from 0 to 65535; it is "http"\n',
    });
  });
});
