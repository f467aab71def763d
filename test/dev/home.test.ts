import { chmod, mkdir, mkdtempDisposable, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openHome } from '../../src/dev/home.ts';
import { newToken } from '../../src/domain/token.ts';

const root = () => mkdtempDisposable(join(tmpdir(), 'fleetbook-home-'));
const mode = async (path: string) => (await stat(path)).mode & 0o777;

it('makes a folder that only its owner can enter, also if it was open before', async () => {
  await using folder = await root();
  await mkdir(join(folder.path, 'sample'));
  await chmod(join(folder.path, 'sample'), 0o755);
  using sample = openHome(folder.path, 'sample');
  using live = openHome(folder.path, 'live');
  expect(sample.folder).toBe(join(folder.path, 'sample'));
  expect(await mode(sample.folder)).toBe(0o700);
  expect(await mode(live.folder)).toBe(0o700);
});

it('is ignored by a surrounding git repository', async () => {
  await using folder = await root();
  using _home = openHome(join(folder.path, '.fleetbook'), 'sample');
  expect(await readFile(join(folder.path, '.fleetbook/.gitignore'), 'utf8')).toBe('*\n');
});

it('is used by only one `up` per mode at a time', async () => {
  await using folder = await root();
  const first = openHome(folder.path, 'sample');
  expect(() => openHome(folder.path, 'sample')).toThrow(
    `another \`fleetbook up\` (process ${process.pid}) uses ${first.folder}: stop it, or set FLEETBOOK_HOME to another folder`,
  );
  using _live = openHome(folder.path, 'live');
  first[Symbol.dispose]();
  using _second = openHome(folder.path, 'sample');
});

it('stores a token for the next start, readable only by its owner, and another for live data', async () => {
  await using folder = await root();
  const token = newToken();
  {
    using home = openHome(folder.path, 'sample');
    expect(home.readToken('api')).toBeUndefined();
    home.writeToken('api', newToken());
    home.writeToken('api', token);
    expect(await mode(join(home.folder, 'token'))).toBe(0o600);
  }
  using again = openHome(folder.path, 'sample');
  using live = openHome(folder.path, 'live');
  expect(again.readToken('api')).toBe(token);
  expect(live.readToken('api')).toBeUndefined();
});

it('stores the token of the operators’ pages in a separate file', async () => {
  await using folder = await root();
  using home = openHome(folder.path, 'sample');
  const token = newToken('operator');
  home.writeToken('operator', token);
  expect([home.readToken('operator'), home.readToken('api')]).toEqual([token, undefined]);
  expect(await mode(join(home.folder, 'operator-token'))).toBe(0o600);
});

it('rejects a damaged token', async () => {
  await using folder = await root();
  using home = openHome(folder.path, 'sample');
  await writeFile(join(home.folder, 'token'), newToken().slice(0, -1));
  expect(() => home.readToken('api')).toThrow(
    `${join(home.folder, 'token')} contains no valid token: remove the file, and the next start creates a new one`,
  );
});

it('names the setting if the folder cannot be made', async () => {
  await using folder = await root();
  await writeFile(join(folder.path, 'file'), '');
  expect(() => openHome(join(folder.path, 'file'), 'sample')).toThrow(
    /set FLEETBOOK_HOME to a folder that can be written$/,
  );
});
