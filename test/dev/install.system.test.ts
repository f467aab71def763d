import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtempDisposable, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { findProgram } from '../../src/processes/find-program.ts';
import { needs } from '../support/needs.ts';

const ROOT = join(import.meta.dirname, '../..');

interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Clone extends AsyncDisposable {
  readonly folder: string;
  write(file: string, content: string, mode?: number): Promise<void>;
  /** Runs install.mjs with the real npm, or with a script of that name in `bin`. */
  install(env?: NodeJS.ProcessEnv): Promise<Answer>;
  nodeVersion(): Promise<string>;
}

/**
 * A small clone: install.mjs and one dependency, `node`, whose install script adds a program as the real one does.
 */
async function clone(): Promise<Clone> {
  const { path: folder, remove } = await mkdtempDisposable(join(tmpdir(), 'fleetbook-install-'));
  const write = async (file: string, content: string, mode = 0o644) => {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), content, { mode });
  };
  await write(
    'package.json',
    JSON.stringify({ name: 'clone', version: '1.0.0', dependencies: { node: 'file:brought' } }),
  );
  await write('brought/package.json', JSON.stringify({ name: 'node', version: '1.0.0', bin: 'program' }));
  await write('brought/program', '#!/bin/sh\necho v26.1.0\n', 0o755);
  await mkdir(join(folder, 'src/dev'), { recursive: true });
  await copyFile(join(ROOT, 'src/dev/install.mjs'), join(folder, 'src/dev/install.mjs'));
  const PATH = `${join(folder, 'bin')}:${process.env.PATH}`;
  const run = (command: string, args: string[], env: NodeJS.ProcessEnv = {}) =>
    new Promise<Answer>((resolve) => {
      const options = { cwd: folder, env: { ...process.env, PATH, ...env } };
      execFile(command, args, options, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      });
    });
  await run('npm', ['install', '--package-lock-only', '--no-audit', '--no-fund']);
  return {
    folder,
    write,
    install: (env) => run(process.execPath, ['src/dev/install.mjs'], env),
    nodeVersion: async () => (await run(join(folder, 'node_modules/.bin/node'), ['--version'])).stdout.trim(),
    [Symbol.asyncDispose]: remove,
  };
}

const NPM_THAT_FAILS = '#!/bin/sh\necho "npm error: no network" >&2\nexit 1\n';

it(
  'installs a fresh clone with one line of output, and never again',
  needs(findProgram('npm') !== undefined, 'npm'),
  async () => {
    await using here = await clone();
    const first = await here.install();
    expect(first).toEqual({
      code: 0,
      stdout: '',
      stderr: 'fleetbook: installing its packages; the first time this takes about a minute …\n',
    });
    expect(await here.nodeVersion()).toBe('v26.1.0');
    // From here on npm is not needed.
    await here.write('bin/npm', NPM_THAT_FAILS, 0o755);
    expect(await here.install()).toEqual({ code: 0, stdout: '', stderr: '' });
  },
);

it('installs again if the lock file names another version', async () => {
  await using here = await clone();
  await here.install();
  await here.write(
    'brought/package.json',
    JSON.stringify({ name: 'node', version: '2.0.0', bin: 'program' }),
  );
  const lock = await readFile(join(here.folder, 'package-lock.json'), 'utf8');
  await here.write(
    'package-lock.json',
    lock.replace('"version": "1.0.0",\n      "bin"', '"version": "2.0.0",\n      "bin"'),
  );
  const again = await here.install();
  expect(again.stderr).toContain('installing its packages');
  expect((await here.install()).stderr).toBe('');
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
  const { code, stderr } = await here.install({ PATH: join(here.folder, 'bin') });
  expect(code).toBe(1);
  expect(stderr).toMatch(/cannot run npm \(.*\); install npm and try again/);
});

it('rejects a Node that is too old for the sources', async () => {
  await using here = await clone();
  await here.write('brought/program', '#!/bin/sh\necho v20.20.2\n', 0o755);
  const { code, stderr } = await here.install();
  expect(code).toBe(1);
  expect(stderr).toContain(
    'node_modules/.bin/node is v20.20.2, and Fleetbook needs 24 or newer: run `npm ci` and try again',
  );
});

it('accepts the system’s Node if the package’s is missing and the system’s is new enough', async () => {
  await using here = await clone();
  await rm(join(here.folder, 'brought/program'));
  expect((await here.install()).code).toBe(0);
});

it('does nothing without a lock file, as in the published package', async () => {
  await using here = await clone();
  await rm(join(here.folder, 'package-lock.json'));
  expect(await here.install()).toEqual({ code: 0, stdout: '', stderr: '' });
});
