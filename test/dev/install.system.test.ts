import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import {
  copyFile,
  mkdir,
  mkdtempDisposable,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { findProgram } from '../../src/processes/find-program.ts';
import { needs } from '../support/needs.ts';
import { until } from '../support/until.ts';

const ROOT = join(import.meta.dirname, '../..');

interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Clone extends AsyncDisposable {
  readonly folder: string;
  write(file: string, content: string, mode?: number): Promise<void>;
  has(file: string): boolean;
  /** Changes both packages and the lock file to this version. */
  lock(version: string): Promise<void>;
  /** Runs install.mjs with the real npm, or with a script of that name in `bin`. */
  install(args?: readonly string[], env?: NodeJS.ProcessEnv): Promise<Answer>;
  readonly env: NodeJS.ProcessEnv;
}

/** A small clone: install.mjs, a library of the program and a tool of the tests. */
async function clone(): Promise<Clone> {
  const { path: folder, remove } = await mkdtempDisposable(join(tmpdir(), 'fleetbook-install-'));
  const write = async (file: string, content: string, mode = 0o644) => {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), content, { mode });
  };
  await write(
    'src/dev/node/package.json',
    JSON.stringify({ optionalDependencies: { 'node-here': '26.1.0' } }),
  );
  await copyFile(join(ROOT, 'src/dev/install.mjs'), join(folder, 'src/dev/install.mjs'));
  const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}` };
  const run = (command: string, args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
    new Promise<Answer>((resolve) => {
      execFile(command, args, { cwd: folder, env: { ...env, ...more } }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      });
    });
  const lock = async (version: string) => {
    for (const name of ['library', 'tool']) {
      await write('package/package.json', JSON.stringify({ name, version }));
      await run('tar', ['-czf', `${name}-${version}.tgz`, 'package']);
    }
    const manifest = {
      dependencies: { library: `file:library-${version}.tgz` },
      devDependencies: { tool: `file:tool-${version}.tgz` },
    };
    await write('package.json', JSON.stringify({ name: 'clone', version: '1.0.0', ...manifest }));
    // npm would also write into the list of what is installed.
    const [modules, aside] = [join(folder, 'node_modules'), join(folder, 'aside')];
    if (existsSync(modules)) await rename(modules, aside);
    await run('npm', ['install', '--package-lock-only', '--no-audit', '--no-fund']);
    if (existsSync(aside)) await rename(aside, modules);
  };
  await lock('1.0.0');
  return {
    folder,
    write,
    lock,
    has: (file) => existsSync(join(folder, file)),
    install: (args = [], more = {}) => run(process.execPath, ['src/dev/install.mjs', ...args], more),
    env,
    [Symbol.asyncDispose]: remove,
  };
}

const NPM_THAT_FAILS = '#!/bin/sh\necho "npm error: no network" >&2\nexit 1\n';

/** Shows install.mjs an older Node.js than the one that runs it. */
const ON_NODE_20 = {
  NODE_OPTIONS: `--import "data:text/javascript,Object.defineProperty(process,'version',{value:'v20.20.2'})"`,
};

it(
  'installs the packages of a start, says how far it is, and never installs again',
  needs(findProgram('npm') !== undefined, 'npm'),
  async () => {
    await using here = await clone();
    const first = await here.install(['start']);
    expect(first).toMatchObject({ code: 0, stdout: '' });
    expect(first.stderr).toMatch(
      /^fleetbook: installing the packages of a start: 0 of \d packages\n(.*\n)*fleetbook: installed the packages of a start in \d+ seconds/,
    );
    expect([here.has('node_modules/library'), here.has('node_modules/tool')]).toEqual([true, false]);
    // From here on npm is not needed.
    await here.write('bin/npm', NPM_THAT_FAILS, 0o755);
    expect(await here.install(['start'])).toEqual({ code: 0, stdout: '', stderr: '' });
  },
);

it('adds the packages of tests to those of a start, which stay in place', async () => {
  await using here = await clone();
  await here.install(['start']);
  const { ino } = await stat(join(here.folder, 'node_modules/.bin'));
  const lock = await readFile(join(here.folder, 'package-lock.json'), 'utf8');
  const { code, stderr } = await here.install();
  expect([code, stderr]).toEqual([0, expect.stringContaining('installing all packages')]);
  expect([here.has('node_modules/library'), here.has('node_modules/tool')]).toEqual([true, true]);
  expect((await stat(join(here.folder, 'node_modules/.bin'))).ino).toBe(ino);
  expect(await readFile(join(here.folder, 'package-lock.json'), 'utf8')).toBe(lock);
  // A start does not remove them.
  for (const args of [['start'], []])
    expect(await here.install(args)).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(here.has('node_modules/tool')).toBe(true);
});

it('installs again if the lock file names another version', async () => {
  await using here = await clone();
  await here.install();
  await here.lock('2.0.0');
  expect((await here.install(['start'])).stderr).toContain('installing all packages');
  expect(await here.install()).toEqual({ code: 0, stdout: '', stderr: '' });
  for (const name of ['library', 'tool'])
    expect(await readFile(join(here.folder, `node_modules/${name}/package.json`), 'utf8')).toContain('2.0.0');
});

it('waits for another installation in the same clone, and then adds what is missing', async () => {
  await using here = await clone();
  const npm = `#!/bin/sh\nuntil [ -e go ]; do sleep 0.05; done\nexec ${findProgram('npm')} "$@"\n`;
  await here.write('bin/npm', npm, 0o755);
  const first = here.install(['start']);
  await until(() => here.has('.installing'));
  const second = spawn(process.execPath, ['src/dev/install.mjs'], { cwd: here.folder, env: here.env });
  let said = '';
  second.stderr.on('data', (chunk) => (said += String(chunk)));
  await until(() => said === 'fleetbook: waiting for another installation in this folder\n');
  const ended = once(second, 'exit');
  await here.write('go', '');
  expect((await first).code).toBe(0);
  expect(await ended).toEqual([0, null]);
  expect([here.has('node_modules/library'), here.has('node_modules/tool')]).toEqual([true, true]);
  expect(here.has('.installing')).toBe(false);
});

it('does not wait for an installation that was killed', async () => {
  await using here = await clone();
  await here.write('.installing', '');
  await utimes(join(here.folder, '.installing'), 0, 0);
  const { code, stderr } = await here.install(['start']);
  expect([code, stderr]).toEqual([0, expect.stringContaining('installed the packages of a start')]);
});

it('begins again after it was interrupted', async () => {
  await using here = await clone();
  await here.install(['start']);
  await here.write('bin/npm', '#!/bin/sh\nmkdir -p node_modules/half\nexec sleep 600\n', 0o755);
  const interrupted = spawn(process.execPath, ['src/dev/install.mjs'], { cwd: here.folder, env: here.env });
  await until(() => here.has('node_modules/half'));
  interrupted.kill('SIGTERM');
  expect(await once(interrupted, 'exit')).toEqual([1, null]);
  await rm(join(here.folder, 'bin/npm'));
  expect((await here.install(['start'])).stderr).toContain('installing the packages of a start');
  expect([here.has('node_modules/library'), here.has('node_modules/half')]).toEqual([true, false]);
  expect(await here.install(['start'])).toEqual({ code: 0, stdout: '', stderr: '' });
});

it('reports that npm failed, below npm’s output', async () => {
  await using here = await clone();
  await here.write('bin/npm', NPM_THAT_FAILS, 0o755);
  const { code, stderr } = await here.install();
  expect(code).toBe(1);
  expect(stderr).toMatch(/npm error: no network\nfleetbook: npm could not install the packages, see above/);
});

it('states the remedy if npm is missing', async () => {
  await using here = await clone();
  const { code, stderr } = await here.install([], { PATH: join(here.folder, 'bin') });
  expect(code).toBe(1);
  expect(stderr).toMatch(/cannot run npm \(.*\); install npm and try again/);
});

it('links the system’s Node if it is new enough', async () => {
  await using here = await clone();
  expect((await here.install(['start'])).code).toBe(0);
  expect(await readlink(join(here.folder, 'node_modules/.bin/node'))).toBe(process.execPath);
});

it('brings a newer Node once if the system’s is too old for the sources', async () => {
  await using here = await clone();
  await here.install();
  await rm(join(here.folder, 'node_modules/.bin/node'));
  const npm = `#!/bin/sh
mkdir -p node_modules/node-here/bin node_modules/node-here/include
echo '{"version":"26.1.0"}' > node_modules/node-here/package.json
printf '#!/bin/sh\\necho v26.1.0\\n' > node_modules/node-here/bin/node
chmod +x node_modules/node-here/bin/node
`;
  await here.write('bin/npm', npm, 0o755);
  expect(await here.install([], ON_NODE_20)).toEqual({
    code: 0,
    stdout: '',
    stderr: 'fleetbook: installing a newer Node.js, because this is v20.20.2\n',
  });
  expect(await readFile(join(here.folder, 'node_modules/.bin/node'), 'utf8')).toContain('echo v26.1.0');
  expect(here.has('node_modules/.node/node_modules/node-here/include')).toBe(false);
  await here.write('bin/npm', NPM_THAT_FAILS, 0o755);
  expect(await here.install([], ON_NODE_20)).toEqual({ code: 0, stdout: '', stderr: '' });
});

it('states the remedy if npm has no newer Node for this system', async () => {
  await using here = await clone();
  await here.install();
  await rm(join(here.folder, 'node_modules/.bin/node'));
  await here.write('bin/npm', '#!/bin/sh\nmkdir node_modules\n', 0o755);
  const { code, stderr } = await here.install([], ON_NODE_20);
  expect(code).toBe(1);
  expect(stderr).toContain(
    'needs Node.js 24 or newer, and this is v20.20.2; install it from https://nodejs.org',
  );
});

it('does nothing without a lock file, as in the published package', async () => {
  await using here = await clone();
  await rm(join(here.folder, 'package-lock.json'));
  expect(await here.install()).toEqual({ code: 0, stdout: '', stderr: '' });
});
