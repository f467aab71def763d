import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rotation } from '../../src/app/actions/inputs.ts';
import { composeReader } from '../../src/app/reader.ts';
import { tokenTable } from '../../src/cli/accounts/token.ts';
import { readConfig } from '../../src/config/config.ts';
import { isWellFormedToken } from '../../src/domain/token.ts';
import type { Scene, TestReader } from '../snapshot/scene.ts';
import { runCommand } from '../support/run-command.ts';
import { until } from '../support/until.ts';
import { openCommandScene } from './scene.ts';

// Each command is a process, and a busy machine starts processes slowly.
describe('token', () => {
  const closing = new AsyncDisposableStack();
  let env: Record<string, string>;
  let scene: Scene;
  let readers: readonly TestReader[];

  beforeAll(async () => {
    ({ scene, env } = closing.use(await openCommandScene()));
    await runCommand(['org', 'create', 'acme'], env);
    await runCommand(['org', 'create', 'other'], env);
    // The second reader receives no messages and only polls.
    readers = [scene.reader(), scene.reader()];
    for (const reader of readers) await reader.catalogue.providers();
    await until(() => readers.every(({ link }) => link.linked));
  });
  afterAll(() => closing.disposeAsync());

  const token = (...args: string[]) => runCommand(['token', ...args], env);
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await token(...args, '--json');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout);
  };
  const accepted = async (text: string) => {
    const grants = await Promise.all(readers.map((reader) => reader.tokens.verify(text)));
    return grants.map((grant) => grant !== undefined);
  };

  it('list without tokens shows how to create one', async () => {
    expect(await token('list')).toEqual({
      code: 0,
      stdout: 'there is no token; create one: fleetbook token create --org <slug>\n',
      stderr: '',
    });
    expect((await token('list', '--org', 'acme')).stdout).toBe(
      'acme has no token; create one: fleetbook token create --org acme\n',
    );
    expect(await json('list')).toEqual([]);
    expect(await token('list', '--org', 'unknown')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('there is no organization "unknown"'),
    });
  });

  it('create --json prints one object with the token, and nothing else anywhere', async () => {
    const made = await json(
      ...[
        'create',
        '--org',
        'acme',
        '--name',
        ' billing job ',
        '--scope',
        'clusters:read',
        '--expires',
        '90d',
      ],
    );
    expect(made).toEqual({
      id: 1,
      token: expect.any(String),
      organization: 'acme',
      name: 'billing job',
      scopes: ['clusters:read'],
      expiresAt: expect.stringMatching(/Z$/),
      published: true,
    });
    expect(isWellFormedToken(made.token)).toBe(true);
    expect(Date.parse(made.expiresAt) - Date.now()).toBeGreaterThan(89 * 86_400_000);
    expect(await accepted(made.token)).toEqual([true, true]);
  });

  it('list shows organization, purpose and expiry of each, and never a token or its hash', async () => {
    await json('create', '--org', 'other');
    const { stdout } = await token('list');
    expect(stdout).toMatch(/^ID {2}NAME {9}ORGANIZATION {2}SCOPES +STATE {2}MADE +EXPIRES +LAST USED\n/);
    expect(stdout).toMatch(
      /^1 +billing job +acme +clusters:read +good +\d+ (?:s|min) ago +\d{4}-\d\d-\d\d \d\d:\d\d +never$/m,
    );
    expect(stdout).toMatch(
      /^2 +- +other +machines:read clusters:read +good +\d+ (?:s|min) ago +never +never$/m,
    );
    expect(stdout).not.toContain('fb_');
    const listed = await json('list', '--org', 'other');
    expect(listed).toEqual([
      {
        id: 2,
        organization: 'other',
        name: null,
        scopes: ['machines:read', 'clusters:read'],
        state: 'good',
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/),
        expiresAt: null,
        revokedAt: null,
        lastUsedAt: null,
      },
    ]);
  });

  it('rotate creates a token of the same kind and revokes the old one at once, on each reader', async () => {
    const old = await json('create', '--org', 'acme', '--scope', 'machines:read', '--expires', '30d');
    expect(await accepted(old.token)).toEqual([true, true]);
    const { code, stdout, stderr } = await token('rotate', String(old.id));
    const made = stdout.trim();
    expect({ code, wellFormed: isWellFormedToken(made) }).toEqual({ code: 0, wellFormed: true });
    expect(stderr).toContain(`replaces token ${old.id}, which is revoked`);
    expect(stderr).not.toContain(made);
    await until(async () => (await accepted(old.token)).every((good) => !good), { timeoutMs: 1000 });
    expect(await accepted(made)).toEqual([true, true]);
    const [before, after] = (await json('list', '--org', 'acme')).slice(-2);
    expect(before).toMatchObject({ id: old.id, state: 'revoked' });
    expect(after).toMatchObject({
      state: 'good',
      scopes: before.scopes,
      expiresAt: before.expiresAt,
      organization: 'acme',
    });
  });

  it('rotate --grace keeps the old one valid until then, and never longer than before', async () => {
    const old = await json('create', '--org', 'acme', '--name', 'nightly');
    const rotated = await json('rotate', String(old.id), '--grace', '1h');
    expect(rotated).toEqual({
      id: old.id + 1,
      token: expect.any(String),
      organization: 'acme',
      name: 'nightly',
      scopes: ['machines:read', 'clusters:read'],
      expiresAt: null,
      old: { id: old.id, revoked: false, expiresAt: expect.any(String) },
      published: true,
    });
    const left = Date.parse(rotated.old.expiresAt) - Date.now();
    expect(left).toBeGreaterThan(3_500_000);
    expect(left).toBeLessThanOrEqual(3_600_000);
    expect(await accepted(old.token)).toEqual([true, true]);
    expect(await accepted(rotated.token)).toEqual([true, true]);

    const short = await json('create', '--org', 'acme', '--expires', '30m');
    const again = await json('rotate', String(short.id), '--grace', '7d');
    expect(again.old.expiresAt).toBe(short.expiresAt);
    expect(again.expiresAt).toBe(short.expiresAt);
  });

  it('rotate does not change an invalid token', async () => {
    const { id } = await json('create', '--org', 'acme');
    expect(await json('delete', String(id))).toEqual({
      id,
      revoked: true,
      wasRevoked: false,
      published: true,
    });
    expect(await json('delete', String(id))).toMatchObject({ wasRevoked: true });
    const tokens = async () => (await scene.sql`select count(*)::int from tokens`)[0];
    const before = await tokens();
    expect(await token('rotate', String(id))).toEqual({
      code: 1,
      stdout: '',
      stderr: `fleetbook: token ${id} is revoked and cannot be replaced; create a token: fleetbook token create\n`,
    });
    await scene.sql`update tokens set expires_at = now() where id = 2`;
    expect(await token('rotate', '2')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('token 2 is expired'),
    });
    expect(await token('rotate', '4711')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no token 4711'),
    });
    expect(await tokens()).toEqual(before);
  });

  it('rotate states the valid format of a grace period or id', async () => {
    expect(await token('rotate', '1', '--grace', 'soon')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'fleetbook: --grace "soon" is not a span; use e.g. 30m, 1h or 7d\n',
    });
    expect(await token('rotate', 'fb_x')).toMatchObject({ code: 2, stdout: '' });
    expect(['30m', '1h', '7d'].map((grace) => rotation.parse({ grace }).grace)).toEqual([
      1_800_000, 3_600_000, 604_800_000,
    ]);
  });

  it('list shows the last use of a token, once its process has written it', async () => {
    const made = await json('create', '--org', 'acme');
    const before = await scene.sql`select version, published_version from tokens where id = ${made.id}`;
    {
      await using tier = await composeReader(readConfig(env), pino({ level: 'silent' }));
      expect(await tier.tokens.verify(made.token)).toMatchObject({ tokenId: made.id });
    }
    const listed = (await json('list', '--org', 'acme')).at(-1);
    expect(listed.id).toBe(made.id);
    // The time is stored by the minute, and is not before the token's creation.
    expect(Date.parse(listed.lastUsedAt)).toBeGreaterThanOrEqual(Date.parse(listed.createdAt));
    expect(Date.now() - Date.parse(listed.lastUsedAt)).toBeLessThan(120_000);
    expect(await scene.sql`select version, published_version from tokens where id = ${made.id}`).toEqual(
      before,
    );
    expect((await token('list')).stdout).toMatch(/ never +\d+ (s|min) ago\n$/);
  });

  it('a command reports that the cache is away, and that readers may be late', async () => {
    const away = { ...env, REDIS_URL: 'redis://127.0.0.1:1' };
    const { id } = await json('create', '--org', 'acme');
    const { code, stderr } = await runCommand(['token', 'rotate', String(id)], away);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringContaining(
        'the cache cannot be reached, so readers may accept it for up to 10 seconds',
      ),
    });
  });
});

it('a table of tokens shows the age of each last use', () => {
  const token = {
    id: 7,
    organization: 'acme',
    name: null,
    scopes: ['machines:read'],
    state: 'good',
    createdAt: '2026-01-01T00:00:00Z',
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: '2026-03-01T10:00:00Z',
  } as const;
  expect(tokenTable([token], new Date('2026-03-01T13:00:00Z'))).toBe(
    'ID  NAME  ORGANIZATION  SCOPES         STATE  MADE      EXPIRES  LAST USED\n' +
      '7   -     acme          machines:read  good   60 d ago  never    3 h ago\n',
  );
});
