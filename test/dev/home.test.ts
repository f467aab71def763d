import { chmod, mkdir, mkdtempDisposable, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openHome } from '../../src/dev/home.ts';
import { newToken } from '../../src/domain/token.ts';

const root = () => mkdtempDisposable(join(tmpdir(), 'fleetbook-home-'));
const mode = async (path: string) => (await stat(path)).mode & 0o777;

it('makes a folder that its owner alone can enter, also where it was open before', async () => {
  await using folder = await root();
  await mkdir(join(folder.path, 'sample'));
  await chmod(join(folder.path, 'sample'), 0o755);
  using sample = openHome(folder.path, 'sample');
  using live = openHome(folder.path, 'live');
  expect(sample.folder).toBe(join(folder.path, 'sample'));
  expect(await mode(sample.folder)).toBe(0o700);
  expect(await mode(live.folder)).toBe(0o700);
});

it('keeps what it holds out of the git repository it may lie in', async () => {
  await using folder = await root();
  using _home = openHome(join(folder.path, '.fleetbook'), 'sample');
  expect(await readFile(join(folder.path, '.fleetbook/.gitignore'), 'utf8')).toBe('*\n');
});

it('is one `up`’s alone, for each mode by itself, until that one is done', async () => {
  await using folder = await root();
  const first = openHome(folder.path, 'sample');
  expect(() => openHome(folder.path, 'sample')).toThrow(
    `another \`fleetbook up\` (process ${process.pid}) uses ${first.folder}: stop it, or set FLEETBOOK_HOME to another folder`,
  );
  using _live = openHome(folder.path, 'live');
  first[Symbol.dispose]();
  using _second = openHome(folder.path, 'sample');
});

it('keeps a token for the next start, readable by its owner alone, and another one for live data', async () => {
  await using folder = await root();
  const token = newToken();
  {
    using home = openHome(folder.path, 'sample');
    expect(home.readToken()).toBeUndefined();
    home.writeToken(newToken());
    home.writeToken(token);
    expect(await mode(join(home.folder, 'token'))).toBe(0o600);
  }
  using again = openHome(folder.path, 'sample');
  using live = openHome(folder.path, 'live');
  expect(again.readToken()).toBe(token);
  expect(live.readToken()).toBeUndefined();
});

it('makes a password for the operators’ pages once, readable by its owner alone', async () => {
  await using folder = await root();
  let token: string;
  {
    using home = openHome(folder.path, 'sample');
    token = home.opsToken();
    expect(token).toMatch(/^[\w-]{32}$/);
    expect(home.opsToken()).toBe(token);
    expect(await mode(join(home.folder, 'ops-token'))).toBe(0o600);
  }
  using again = openHome(folder.path, 'sample');
  using live = openHome(folder.path, 'live');
  expect(again.opsToken()).toBe(token);
  expect(live.opsToken()).not.toBe(token);
  // An earlier release made this one.
  await writeFile(join(live.folder, 'ops-token'), 'a-token-of-24-characters\n');
  expect(live.opsToken()).toMatch(/^[\w-]{32}$/);
});

it('does not hand out a damaged token', async () => {
  await using folder = await root();
  using home = openHome(folder.path, 'sample');
  await writeFile(join(home.folder, 'token'), newToken().slice(0, -1));
  expect(() => home.readToken()).toThrow(
    `${join(home.folder, 'token')} holds no token: remove it, and a new one is made`,
  );
});

it('names the setting when the folder cannot be made', async () => {
  await using folder = await root();
  await writeFile(join(folder.path, 'file'), '');
  expect(() => openHome(join(folder.path, 'file'), 'sample')).toThrow(
    /set FLEETBOOK_HOME to a folder that can be written$/,
  );
});
