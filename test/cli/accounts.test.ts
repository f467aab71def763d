/** What commands about organizations, people and tokens ask, print and publish. test/db has what their changes do. */
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { confirmSlug } from '../../src/cli/accounts/org.ts';
import { tokenTable } from '../../src/cli/accounts/token.ts';
import { isWellFormedToken } from '../../src/domain/token.ts';
import { addSample, type Sample } from '../snapshot/rows.ts';
import type { Scene, TestReader } from '../snapshot/scene.ts';
import { runCommand } from '../support/run-command.ts';
import { until } from '../support/until.ts';
import { openCommandScene } from './scene.ts';

const closing = new AsyncDisposableStack();
let env: Record<string, string>;
let scene: Scene;
let sample: Sample;
let reader: TestReader;

beforeAll(async () => {
  ({ scene, env } = closing.use(await openCommandScene()));
});
afterAll(() => closing.disposeAsync());

const run = (line: string) => runCommand(line.split(' '), env);
const json = async (line: string) => {
  const { code, stdout, stderr } = await run(`${line} --json`);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
};
const lines = async (line: string) => (await run(line)).stdout.replaceAll(/\d+ (?:s|min) ago/g, 'now');
const isAccepted = async (token: string) => (await reader.tokens.verify(token)) !== undefined;
const clustersOf = async (organization: number) =>
  JSON.parse((await reader.clusters.clusters(organization)).body.identity.toString());

it('an empty list shows how to create the first', async () => {
  expect(await run('org list')).toEqual({
    code: 0,
    stdout: 'there is no organization; create one: fleetbook org create <slug>\n',
    stderr: '',
  });
  expect(await lines('token list')).toBe(
    'there is no token; create one: fleetbook token create --org <slug>\n',
  );
  expect(await json('org list')).toEqual([]);
});

it('an organization is created, renamed and listed', async () => {
  // Organizations a and b, with a cluster each.
  sample = await addSample(scene.sql);
  reader = scene.reader();
  await reader.catalogue.providers();
  await until(() => reader.link.linked);
  const acme = { id: expect.any(Number), slug: 'acme', name: 'acme' };
  expect(await json('org create acme')).toEqual(acme);
  expect(await run('org create acme --json')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('is taken'),
  });
  expect(await lines('org rename acme --name Acme')).toBe(
    'organization acme has the name Acme now; its slug does not change\n',
  );
  expect(await lines('org list')).toBe(
    'ORGANIZATION  NAME  CLUSTERS  TOKENS  MADE\n' +
      'a             a     1         0       now\n' +
      'acme          Acme  0         0       now\n' +
      'b             b     1         0       now\n',
  );
});

describe('a token', () => {
  it('is printed once and works, and lists show everything else', async () => {
    const made = await json('token create --org a --name billing --scope clusters:read --expires 90d');
    expect(made).toEqual({
      id: 1,
      token: expect.any(String),
      organization: 'a',
      name: 'billing',
      scopes: ['clusters:read'],
      expiresAt: expect.stringMatching(/Z$/),
      published: true,
    });
    expect(isWellFormedToken(made.token)).toBe(true);
    expect(await isAccepted(made.token)).toBe(true);
    const list = await lines('token list --org a');
    expect(list).toMatch(/^ID {2}NAME +ORGANIZATION +SCOPES +STATE {2}MADE +EXPIRES +LAST USED\n/);
    expect(list).toMatch(/^1 +billing +a +clusters:read +good +now +\d{4}-\d\d-\d\d \d\d:\d\d +never$/m);
    expect(list).not.toContain('fb_');
    expect(await json('token list')).toMatchObject([{ id: 1, state: 'good', lastUsedAt: null }]);
  });

  it('is rotated: the new one alone is on standard output, and readers refuse the old one at once', async () => {
    const old = await json('token create --org a');
    expect(await isAccepted(old.token)).toBe(true);
    const { code, stdout, stderr } = await run(`token rotate ${old.id}`);
    const made = stdout.trim();
    expect([code, isWellFormedToken(made)]).toEqual([0, true]);
    expect(stderr).toContain(`replaces token ${old.id}, which is revoked`);
    expect(stderr).not.toContain(made);
    await until(async () => !(await isAccepted(old.token)));
    expect(await isAccepted(made)).toBe(true);
    expect(await json(`token rotate ${old.id + 1} --grace 1h`)).toMatchObject({
      id: old.id + 2,
      old: { id: old.id + 1, revoked: false, expiresAt: expect.any(String) },
      published: true,
    });
    expect(await run(`token rotate ${old.id}`)).toEqual({
      code: 1,
      stdout: '',
      stderr: `fleetbook: token ${old.id} is revoked and cannot be replaced; create a token: fleetbook token create\n`,
    });
  });

  it('is revoked once', async () => {
    expect(await json('token delete 1')).toEqual({
      id: 1,
      revoked: true,
      wasRevoked: false,
      published: true,
    });
    expect(await json('token delete 1')).toMatchObject({ wasRevoked: true });
  });

  it('may be accepted for some seconds if the cache is away, which the command states', async () => {
    const { id } = await json('token create --org a');
    const away = { ...env, REDIS_URL: 'redis://127.0.0.1:1' };
    expect(await runCommand(['token', 'rotate', String(id)], away)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(
        'the cache cannot be reached, so readers may accept it for up to 10 seconds',
      ),
    });
  });

  it('has the age of its last use in the list', () => {
    const token = {
      ...{ id: 7, organization: 'acme', name: null, scopes: ['machines:read'] },
      ...{ createdAt: '2026-01-01T00:00:00Z', expiresAt: null, revokedAt: null },
      state: 'good',
      lastUsedAt: '2026-03-01T10:00:00Z',
    } as const;
    expect(tokenTable([token], new Date('2026-03-01T13:00:00Z'))).toBe(
      'ID  NAME  ORGANIZATION  SCOPES         STATE  MADE      EXPIRES  LAST USED\n' +
        '7   -     acme          machines:read  good   60 d ago  never    3 h ago\n',
    );
  });
});

it('a person is listed, renamed in the clusters of each reader at once, and deleted after a confirmation', async () => {
  expect(await lines('user list --org b')).toBe(
    'ID  FIRST NAME  LAST NAME     CLUSTERS\n2   Ann         cluster-test  1\n',
  );
  expect(await lines('user rename 2 --org b --first-name Änne --last-name Ørsted')).toBe(
    'Ann cluster-test is now Änne Ørsted (id 3), in 1 cluster\n',
  );
  await until(async () => (await clustersOf(sample.b))[0].user.first_name === 'Änne');
  const refused = await run('user delete 3 --org b');
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toMatch(/nothing was deleted, because there is no terminal.*--yes/);
  expect(await json('user delete 3 --org b --yes')).toEqual({
    ...{ id: 3, was: { firstName: 'Änne', lastName: 'Ørsted' }, clusters: 1, published: true },
  });
  expect(await lines('user list --org b')).toBe('no cluster of b names its creator\n');
  expect((await clustersOf(sample.a))[0].user.first_name).toBe('Ann');
});

describe('the deletion of an organization', () => {
  it('needs --yes without a terminal, and states its effects, which readers have at once', async () => {
    expect(await run('org delete a')).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/cannot be restored.* fleetbook org delete a --yes\n$/),
    });
    const { token } = await json('token create --org a');
    expect([await isAccepted(token), (await clustersOf(sample.a)).length]).toEqual([true, 1]);
    expect(await lines('org delete a --yes')).toMatch(
      /^organization a is deleted: 1 cluster removed, \d tokens revoked; its slug cannot be used again\n$/,
    );
    await until(async () => !(await isAccepted(token)));
    await until(async () => (await clustersOf(sample.a)).length === 0);
    expect(await lines('org list')).not.toMatch(/^a /m);
    expect(await lines('org list --all')).toMatch(/^ORGANIZATION .* DELETED\na .* now\n/);
  });

  it('is reported to a program, also while the cache is away', async () => {
    const away = { ...env, REDIS_URL: 'redis://127.0.0.1:1' };
    const { code, stdout } = await runCommand(['org', 'delete', 'b', '--yes', '--json'], away);
    expect({ code, report: JSON.parse(stdout) }).toEqual({
      code: 0,
      report: { id: sample.b, slug: 'b', name: 'b', clusters: 1, tokens: 0, published: false },
    });
  });

  async function answer(text: string): Promise<string> {
    const input = Object.assign(new PassThrough(), { isTTY: true });
    const output = new PassThrough();
    const confirmed = confirmSlug('acme', input, output);
    input.write(`${text}\n`);
    await confirmed;
    return String(output.read());
  }

  it('is confirmed by exactly the slug', async () => {
    expect(await answer('acme')).toContain('Type its slug, acme, to continue');
  });

  it.each(['', 'y', 'yes', 'acm', 'ACME', 'acme2'])('is not confirmed by %j', async (text) => {
    await expect(answer(text)).rejects.toThrow('nothing was deleted');
  });
});

it.each([
  ['org delete unknown', 1, /there is no organization "unknown"/],
  ['org create a', 1, /Choose another/],
  ['org rename a --name x', 1, /or it is deleted/],
  ['token create --org a', 1, /or it is deleted/],
  ['token rotate 4711', 1, /no token 4711/],
  ['token rotate fb_x', 2, /"fb_x" is not/],
  ['token rotate 1 --grace soon', 2, /^fleetbook: --grace "soon" is not a span; use e.g. 30m, 1h or 7d\n$/],
  ['user list --org a', 1, /or it is deleted/],
  ['user delete 1 --org acme', 1, /^fleetbook: acme has no user 1; see fleetbook user list --org acme\n$/],
  [
    'user delete Ann --org acme',
    2,
    /"Ann" is not a user id; give the number that `fleetbook user list` shows/,
  ],
  ['user rename 2 --org acme --first-name x', 2, /required option '--last-name <name>'/],
])('%s ends with %i and one line that helps', async (line, code, message) => {
  const result = await run(line);
  expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: '' });
  expect(result.stderr).toMatch(message);
  expect(result.stderr.trim().split('\n')).toHaveLength(1);
});
