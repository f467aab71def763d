import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { acquireRedisServer } from '../../src/dev/install-redis.ts';
import { findRedisServer } from '../../src/dev/redis.ts';
import { findProgram } from '../../src/processes/find-program.ts';
import { ANOTHER_USER, needs } from '../support/needs.ts';
import { asOrdinaryUser } from './ordinary-user.ts';

const PROGRAM = join(import.meta.dirname, 'programs/install-redis.ts');
const isRoot = process.getuid?.() === 0;

/** A folder that is the whole PATH; its programs record their calls. */
interface Machine extends AsyncDisposable {
  readonly path: string;
  add(program: string, script?: string): Promise<void>;
  calls(): Promise<string[]>;
}

async function machine(): Promise<Machine> {
  const { path, remove } = await mkdtempDisposable(join(tmpdir(), 'fleetbook-machine-'));
  await chmod(path, 0o755);
  const log = join(path, 'calls.log');
  await writeFile(log, '');
  return {
    path,
    async add(program, script = '') {
      await writeFile(join(path, program), `#!/bin/sh\necho "${program} $*" >> '${log}'\n${script}\n`, {
        mode: 0o755,
      });
    },
    calls: async () => (await readFile(log, 'utf8')).split('\n').filter((line) => line !== ''),
    [Symbol.asyncDispose]: remove,
  };
}

const INSTALL = 'apt-get -o DPkg::Lock::Timeout=120 -qq install --yes --no-install-recommends redis-server';
/** The effect of apt-get: from then on there is a redis-server. */
const installs = (path: string) => `ln -s '${findRedisServer()?.command}' '${path}/redis-server'`;

async function acquire(path: string): Promise<{ message: string; printed: string[] }> {
  const printed: string[] = [];
  try {
    const binary = await acquireRedisServer({
      path,
      interactive: false,
      notify: (line) => printed.push(line),
    });
    return { message: binary.command, printed };
  } catch (error) {
    return { message: error instanceof Error ? error.message : String(error), printed };
  }
}

it('uses valkey-server without redis-server', async () => {
  await using here = await machine();
  await here.add('valkey-server', 'echo "Valkey server v=8.1.1 sha=00000000:0 malloc=libc bits=64 build=0"');
  expect(await acquireRedisServer({ path: here.path })).toEqual({
    command: join(here.path, 'valkey-server'),
    name: 'valkey-server',
    version: '8.1.1',
  });
});

it('does not recommend REDIS_URL where a running server would not help, as for the tests', async () => {
  await using here = await machine();
  const refused = acquireRedisServer({ path: here.path, isUrlUseful: false });
  await expect(refused).rejects.toThrow(/was found\. Install one \(.*\)$/);
});

it('states the remedy without a server, with an old one, and without apt-get', async () => {
  await using here = await machine();
  await here.add('redis-server', 'echo "Redis server v=6.0.16 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64"');
  const { message } = await acquire(here.path);
  expect(message).toBe(
    'no redis-server or valkey-server (7.0 or newer) was found. Install one (Debian, Ubuntu: `sudo apt install redis-server`; ' +
      'macOS: `brew install valkey`; Fedora: `sudo dnf install valkey`), or set REDIS_URL to a running server, ' +
      'e.g. redis://127.0.0.1:6379. See docs/install.md for a Redis without root',
  );
});

it(
  'installs the package as root after an announcement, and leaves its service off',
  needs(isRoot, 'to be run by root'),
  async () => {
    await using here = await machine();
    await here.add('apt-get', installs(here.path));
    await here.add('update-rc.d');
    await here.add('service');
    await here.add('systemctl');
    const policyBefore = existsSync('/usr/sbin/policy-rc.d');
    const { message, printed } = await acquire(here.path);
    expect(message).toBe(join(here.path, 'redis-server'));
    expect(printed).toEqual([
      'No redis-server was found: installing the system package redis-server with apt-get; its service stays off.',
      expect.stringMatching(/^Installed redis-server \d+\.\d+\.\d+\.$/),
    ]);
    const turnedOff = existsSync('/run/systemd/system')
      ? ['systemctl disable --now redis-server.service']
      : ['update-rc.d redis-server disable', 'service redis-server stop'];
    expect(await here.calls()).toEqual([INSTALL, ...turnedOff]);
    expect(existsSync('/usr/sbin/policy-rc.d')).toBe(policyBefore);
  },
);

it(
  'prevents services from starting during the installation',
  needs(isRoot, 'to be run by root'),
  async () => {
    await using here = await machine();
    await here.add(
      'apt-get',
      `/usr/sbin/policy-rc.d redis-server start; echo "policy $?" >> '${here.path}/calls.log'; ${installs(here.path)}`,
    );
    await acquire(here.path);
    expect(await here.calls()).toContain('policy 101');
  },
);

it('fetches the package lists if the package is unknown', needs(isRoot, 'to be run by root'), async () => {
  await using here = await machine();
  await here.add(
    'apt-get',
    `case "$*" in *update*) touch '${here.path}/lists';; *) test -e '${here.path}/lists' && ${installs(here.path)};; esac`,
  );
  const { message } = await acquire(here.path);
  expect(message).toBe(join(here.path, 'redis-server'));
  expect(await here.calls()).toEqual([INSTALL, 'apt-get -o DPkg::Lock::Timeout=120 -qq update', INSTALL]);
});

it('passes on why apt-get failed, with the remedy', needs(isRoot, 'to be run by root'), async () => {
  await using here = await machine();
  await here.add('apt-get', 'echo "E: Unable to locate package redis-server" >&2; exit 100');
  const { message } = await acquire(here.path);
  expect(message).toMatch(/^apt-get could not install redis-server\. Install one .*REDIS_URL/);
  expect(message).toContain('E: Unable to locate package redis-server');
});

it('installs nothing without root', needs(asOrdinaryUser !== undefined, ANOTHER_USER), async () => {
  await using here = await machine();
  await here.add('apt-get', installs(here.path));
  const [command = '', ...args] = [...(asOrdinaryUser ?? []), process.execPath, PROGRAM, here.path];
  const { stdout } = await output(command, args);
  expect(stdout).toContain('no redis-server or valkey-server (7.0 or newer) was found');
  expect(await here.calls()).toEqual([]);
});

it(
  'asks first on a terminal, and accepts a no',
  needs(isRoot && findProgram('script') !== undefined, 'to be run by root, and the program script'),
  async () => {
    await using here = await machine();
    await here.add('apt-get', installs(here.path));
    const command = `'${process.execPath}' '${PROGRAM}' '${here.path}'`;
    const { stdout } = await output('script', ['-qec', command, '/dev/null'], 'no\n');
    expect(stdout).toContain('Install the system package redis-server with apt-get? [Y/n]');
    expect(stdout).toContain('redis-server was not installed. Install one');
    expect(await here.calls()).toEqual([]);
  },
);

function output(command: string, args: readonly string[], input = ''): Promise<{ stdout: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    let stdout = '';
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.once('error', reject);
    child.once('close', () => resolve({ stdout }));
    child.stdin.end(input);
  });
}
