/** The packages client and mcp, as npm packs them. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtempDisposable, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const TSC = join(ROOT, 'node_modules/.bin/tsc');

const cleanUp = new AsyncDisposableStack();
let host: string;
const size: Record<string, number> = {};

/** Creates a program's folder with only both packages installed. */
beforeAll(async () => {
  host = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-packages-'))).path;
  for (const name of ['client', 'mcp']) {
    const cwd = join(ROOT, 'packages', name);
    const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', host], { cwd });
    const tarball = join(host, stdout.trim().split('\n').at(-1) ?? '');
    size[name] = (await stat(tarball)).size;
    const installed = join(host, 'node_modules/@fleetbook', name);
    await mkdir(installed, { recursive: true });
    await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components', '1']);
  }
}, 180_000);
afterAll(() => cleanUp.disposeAsync());

const manifest = async (name: string) =>
  JSON.parse(await readFile(join(host, 'node_modules/@fleetbook', name, 'package.json'), 'utf8')) as {
    version: string;
    bin?: Readonly<Record<string, string>>;
    dependencies?: object;
    peerDependencies?: object;
  };
const server = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };

describe.each(['client', 'mcp'])('the package %s', (name) => {
  it('has the release number of the server, a licence and no dependency', async () => {
    const { version, dependencies, peerDependencies } = await manifest(name);
    expect({ version, dependencies, peerDependencies }).toEqual({ version: server.version });
    const licence = join(host, 'node_modules/@fleetbook', name, 'LICENSE');
    expect(await readFile(licence, 'utf8')).toContain('Apache License');
  });
});

describe('the client', () => {
  it('takes at most 30 kB, packed', () => {
    expect(size.client).toBeGreaterThan(1000);
    expect(size.client).toBeLessThanOrEqual(30_000);
  });

  it('has types that need neither Node nor the server', async () => {
    const program = join(host, 'program.mts');
    await writeFile(
      program,
      `import { FleetbookClient, type Machine } from '@fleetbook/client';
      const client = new FleetbookClient({ url: 'http://127.0.0.1', token: 'fb_' });
      export const machines = (): Promise<readonly Machine[]> => client.machines(1, 2).then(({ data }) => data);
      // @ts-expect-error The parameter does not exist.
      export const search = () => client.search({ min_cpus: 1 });
      console.log(typeof client.search);`,
    );
    const lib = ['--ignoreConfig', '--target', 'es2022', '--lib', 'es2022,dom', '--types', ''];
    await run(TSC, [...lib, '--strict', '--noEmit', '--module', 'nodenext', program]).catch(
      (error: { stdout: string }) => {
        throw new Error(`tsc found:\n${error.stdout}`, { cause: error });
      },
    );
    expect((await run(process.execPath, [program])).stdout).toBe('function\n');
  });
});

describe('the program of the package mcp', () => {
  const program = async () =>
    join(host, 'node_modules/@fleetbook/mcp', (await manifest('mcp')).bin?.['fleetbook-mcp'] ?? '');

  it('names a missing variable', async () => {
    await expect(run(process.execPath, [await program()], { env: {} })).rejects.toMatchObject({
      code: 2,
      stdout: '',
      stderr:
        'fleetbook-mcp: FLEETBOOK_URL must be the address of the API, e.g. https://fleetbook.example.com\n',
    });
  });

  it('offers the tools, with its own name and release', async () => {
    const client = new Client({ name: 'test', version: '1.0.0' });
    const env = { FLEETBOOK_URL: 'http://127.0.0.1:1', FLEETBOOK_TOKEN: 'fb_' };
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [await program()], env, stderr: 'ignore' }),
    );
    try {
      expect(client.getServerVersion()).toMatchObject({ name: 'fleetbook', version: server.version });
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain('search_machines');
      const failed = await client.callTool({ name: 'list_clusters', arguments: {} });
      expect(failed.isError).toBe(true);
      expect(JSON.stringify(failed.content)).toContain('http://127.0.0.1:1 cannot be reached');
    } finally {
      await client.close();
    }
  });
});
