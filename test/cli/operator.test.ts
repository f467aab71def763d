import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newPassword } from '../../src/cli/operator.ts';
import { passwordMatches } from '../../src/domain/password.ts';
import type { Scene } from '../snapshot/scene.ts';
import { openCommandScene } from '../support/command-scene.ts';
import { fleetbook } from '../support/fleetbook.ts';

const PASSWORD = 'correct horse battery';

describe('operator', () => {
  const closing = new AsyncDisposableStack();
  let env: Record<string, string>;
  let scene: Scene;
  beforeAll(async () => {
    ({ scene, env } = closing.use(await openCommandScene()));
  });
  afterAll(() => closing.disposeAsync());
  const operator = (args: readonly string[], input = '') => fleetbook(['operator', ...args], env, input);
  const hash = async (name: string): Promise<string> =>
    (await scene.sql`select password_hash from operators where name = ${name}`)[0]?.password_hash;

  it('create reads the password from standard input and shows it nowhere', async () => {
    expect((await operator(['list'])).stdout).toMatch(
      /there is no operator; make one: fleetbook operator create/,
    );
    const made = await operator(['create', 'ada', '--role', 'admin', '--by', 'root'], `${PASSWORD}\n`);
    expect(made).toEqual({
      code: 0,
      stdout: 'operator ada can sign in to the operators’ pages, as admin\n',
      stderr: '',
    });
    expect(await passwordMatches(PASSWORD, await hash('ada'))).toBe(true);
    expect(await operator(['create', 'ada', '--role', 'viewer'], PASSWORD)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the name "ada" is taken'),
    });
    const { stdout } = await operator(['list']);
    expect(stdout).toMatch(
      /^OPERATOR +ROLE +SIGNS IN BY +STATE +MADE +LAST SEEN\nada +admin +password +enabled +\d+ s ago +never\n$/,
    );
  });

  it.each([
    [
      ['create', 'Ada Lovelace', '--role', 'admin'],
      PASSWORD,
      /"Ada Lovelace" is no operator’s name; use 1 to 64/,
    ],
    [['create', 'bob', '--role', 'king'], PASSWORD, /"king" is no role; use viewer, operator, admin/],
    [['create', 'bob', '--role', 'viewer'], 'short', /the password has 5 characters; give at least 12/],
    [['create', 'bob', '--role', 'viewer'], '', /the password has 0 characters/],
    [['set-role', 'ada', 'root'], '', /"root" is no role/],
  ])('%j with wrong input says what would do', async (args, input, message) => {
    expect(await operator(args, input)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(message),
    });
  });

  it('set-role, set-password, disable and enable change an account, with --json', async () => {
    const json = async (args: readonly string[], input?: string) => {
      const { code, stdout, stderr } = await operator([...args, '--json'], input);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      return JSON.parse(stdout);
    };
    expect(await json(['set-role', 'ada', 'viewer'])).toEqual({ name: 'ada', role: 'viewer', changed: true });
    expect(await json(['set-password', 'ada'], 'another good password')).toEqual({
      name: 'ada',
      changed: true,
    });
    expect(await passwordMatches('another good password', await hash('ada'))).toBe(true);
    expect(await json(['disable', 'ada'])).toEqual({ name: 'ada', disabled: true, changed: true });
    expect(await json(['disable', 'ada'])).toEqual({ name: 'ada', disabled: true, changed: false });
    expect((await json(['list']))[0]).toMatchObject({ role: 'viewer', disabledAt: expect.any(String) });
    expect(await json(['enable', 'ada'])).toMatchObject({ disabled: false, changed: true });
    expect(await operator(['enable', 'nobody'])).toMatchObject({
      code: 1,
      stderr: 'fleetbook: there is no operator "nobody"; see fleetbook operator list\n',
    });
    const { rows } = JSON.parse((await fleetbook(['audit', '--json'], env)).stdout);
    expect(rows.map(({ action }: { action: string }) => action)).toEqual([
      'operator.enable',
      'operator.disable',
      'operator.set-password',
      'operator.set-role',
      'operator.create',
    ]);
    expect(rows.at(-1)).toMatchObject({ by: 'root', subject: { kind: 'operator', id: 'ada' } });
  });

  it('use-oidc takes the password away, and set-password gives one again', async () => {
    const olga = 'olga@example.com';
    await operator(['create', olga, '--role', 'viewer'], PASSWORD);
    const { stdout: told } = await operator(['use-oidc', olga, '--json']);
    expect(JSON.parse(told)).toEqual({ name: olga, signsInBy: 'oidc' });
    expect(await hash(olga)).toBeNull();
    expect((await operator(['list'])).stdout).toMatch(/^olga@example.com +viewer +OpenID Connect +enabled/m);
    expect(await operator(['use-oidc', 'eve@example.com'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no operator "eve@example.com"'),
    });
    expect(await operator(['use-oidc', 'olga'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"olga" is no address'),
    });
    expect((await operator(['set-password', olga], PASSWORD)).code).toBe(0);
    expect((await operator(['list'])).stdout).toMatch(/^olga@example.com +viewer +password +enabled/m);
    const { stdout } = await fleetbook(['audit', '--json', '--limit', '2'], env);
    expect(stdout).toContain('operator.use-oidc');
  });
});

describe('a password that is typed', () => {
  const typed = async (...lines: readonly string[]) => {
    const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => input });
    const output = new PassThrough();
    const asked = newPassword('ada', input, output)
      .catch((error: Error) => error.message)
      .finally(() => output.end());
    const shown = text(output);
    for (const line of lines) {
      input.write(line);
      // The next question is asked first.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { password: await asked, shown: await shown };
  };

  it('is asked for twice and not shown', async () => {
    expect(await typed(`${PASSWORD}\r`, `${PASSWORD}\r`)).toEqual({
      password: PASSWORD,
      shown: 'Password of ada: \nThe same again: \n',
    });
    expect((await typed(`${PASSWORD}\r`, 'another one, mistyped\r')).password).toMatch(/is another one/);
  });

  it('is refused at once when it does not do', async () => {
    expect(await typed('short\r')).toEqual({
      password: expect.stringMatching(/at least 12/),
      shown: 'Password of ada: \n',
    });
  });

  it('is given up by Ctrl-C', async () => {
    expect((await typed('half a pass\u0003')).password).toBe('nothing was changed');
  });
});
