import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashToken, isWellFormedToken } from '../../../src/domain/token.ts';
import { openCommandScene } from '../../cli/scene.ts';
import type { Scene } from '../../snapshot/scene.ts';
import { runCommand } from '../../support/run-command.ts';

describe('operator', () => {
  const closing = new AsyncDisposableStack();
  let env: Record<string, string>;
  let scene: Scene;
  beforeAll(async () => {
    ({ scene, env } = closing.use(await openCommandScene()));
  });
  afterAll(() => closing.disposeAsync());
  const operator = (args: readonly string[]) => runCommand(['operator', ...args], env);
  const json = async (args: readonly string[]) => {
    const { code, stdout, stderr } = await operator([...args, '--json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout);
  };

  it('create prints a token alone on standard output, once, and stores its hash', async () => {
    expect((await operator(['list'])).stdout).toMatch(
      /there is no operator; create one: fleetbook operator create/,
    );
    const { code, stdout, stderr } = await operator(['create', 'ada', '--role', 'admin', '--by', 'root']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^fbo_[0-9A-Za-z]{36}\n$/);
    expect(isWellFormedToken(stdout.trim(), 'operator')).toBe(true);
    expect(stderr).toBe(
      'operator ada is admin; token 1, without an expiry. It is shown once; revoke it with: fleetbook operator token delete 1\n',
    );
    const hash = Buffer.from(hashToken(stdout.trim()), 'hex');
    expect(await scene.sql`select hash from operator_tokens`).toEqual([{ hash }]);
    expect(await operator(['create', 'ada', '--role', 'viewer'])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'fleetbook: the name "ada" is taken; for another token: fleetbook operator token create ada\n',
    });
    expect((await operator(['list'])).stdout).toMatch(
      /^OPERATOR +ROLE +SIGNS IN BY +STATE +CREATED +LAST SEEN\nada +admin +1 token +enabled +\d+ (?:s|min) ago +never\n$/,
    );
  });

  it.each([
    [
      ['create', 'Ada Lovelace', '--role', 'admin'],
      /"Ada Lovelace" cannot be an operator’s name; use 1 to 64/,
    ],
    [['create', 'bob', '--role', 'king'], /"king" is no role; use viewer, operator, admin/],
    [['create', 'bob', '--role', 'viewer', '--expires', 'soon'], /--expires "soon" is not a time/],
    [['set-role', 'ada', 'root'], /"root" is no role/],
    [['token', 'delete', 'fbo_x'], /"fbo_x" is not a token id; .*, not the token/],
  ])('%j with wrong input states the accepted values', async (args, message) => {
    expect(await operator(args)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(message),
    });
  });

  it('token, rotate and revoke change tokens, which tokens lists', async () => {
    const other = await json(['token', 'create', 'ada', '--name', 'prometheus', '--expires', '90d']);
    expect(other).toEqual({
      id: 2,
      operator: 'ada',
      token: expect.stringMatching(/^fbo_/),
      name: 'prometheus',
      expiresAt: expect.stringMatching(/Z$/),
    });
    const rotated = await json(['token', 'rotate', '2', '--grace', '1h']);
    expect(rotated).toMatchObject({
      id: 3,
      operator: 'ada',
      name: 'prometheus',
      old: { id: 2, revoked: false },
    });
    expect((await operator(['token', 'delete', '3'])).stdout).toBe(
      'operator token 3 is revoked; its sessions end within a second\n',
    );
    expect(await json(['token', 'delete', '3'])).toEqual({ id: 3, revoked: true, wasRevoked: true });
    expect((await operator(['token', 'rotate', '3'])).stderr).toMatch(
      /^fleetbook: operator token 3 is revoked and cannot be rotated/,
    );
    for (const command of ['delete', 'rotate'])
      expect(await operator(['token', command, '77'])).toMatchObject({
        code: 1,
        stderr: 'fleetbook: there is no operator token 77; see fleetbook operator token list\n',
      });
    expect((await operator(['token', 'create', 'unknown'])).stderr).toMatch(/there is no operator "unknown"/);
    const rows = await json(['token', 'list', 'ada']);
    expect(rows.map(({ id, state }: { id: number; state: string }) => [id, state])).toEqual([
      [1, 'good'],
      [2, 'good'],
      [3, 'revoked'],
    ]);
    expect((await operator(['token', 'list'])).stdout).toMatch(
      /^ID +OPERATOR +NAME +STATE +CREATED +EXPIRES +LAST USED\n1 +ada +- +good +\d+ (?:s|min) ago +never +never\n2 +ada +prometheus/,
    );
    expect((await operator(['token', 'list', 'eve'])).stdout).toMatch(/^eve has no token/);
  });

  it('set-role, disable and enable change an operator, with --json', async () => {
    expect(await json(['set-role', 'ada', 'viewer'])).toEqual({ name: 'ada', role: 'viewer', changed: true });
    expect(await json(['disable', 'ada'])).toEqual({ name: 'ada', disabled: true, changed: true });
    expect(await json(['disable', 'ada'])).toEqual({ name: 'ada', disabled: true, changed: false });
    expect((await json(['list']))[0]).toMatchObject({
      role: 'viewer',
      tokens: 2,
      disabledAt: expect.any(String),
    });
    expect(await json(['enable', 'ada'])).toMatchObject({ disabled: false, changed: true });
    expect(await operator(['enable', 'unknown'])).toMatchObject({
      code: 1,
      stderr: 'fleetbook: there is no operator "unknown"; see fleetbook operator list\n',
    });
  });

  it('use-oidc revokes the tokens, and token issues one again', async () => {
    const olga = 'olga@example.com';
    const { id } = await json(['create', olga, '--role', 'viewer']);
    expect(await json(['use-oidc', olga])).toEqual({ name: olga, signsInBy: 'oidc' });
    expect((await json(['token', 'list', olga]))[0]).toMatchObject({ id, state: 'revoked' });
    expect((await operator(['list'])).stdout).toMatch(/^olga@example.com +viewer +OpenID Connect +enabled/m);
    expect(await operator(['use-oidc', 'eve@example.com'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no operator "eve@example.com"'),
    });
    expect(await operator(['use-oidc', 'olga'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"olga" is no email address'),
    });
    expect((await operator(['token', 'create', olga])).code).toBe(0);
    expect((await operator(['list'])).stdout).toMatch(/^olga@example.com +viewer +1 token +enabled/m);
    const { rows } = JSON.parse((await runCommand(['audit', '--json'], env)).stdout);
    expect(rows.at(-1)).toMatchObject({ action: 'operator.create', by: 'root', subject: { id: 'ada' } });
    expect(JSON.stringify(rows)).not.toContain('fbo_');
  });
});
