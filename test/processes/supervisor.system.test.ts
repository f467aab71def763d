import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { identify } from '../../src/dev/process-identity.ts';
import { startChild } from '../../src/processes/child-process.ts';
import { Supervisor, type SupervisorOptions } from '../../src/processes/supervisor.ts';
import { startProgram } from '../support/program.ts';
import { until } from '../support/until.ts';

const programs = join(import.meta.dirname, 'programs');

interface Scene extends AsyncDisposable {
  readonly supervisor: Supervisor;
  /** Starts child.ts under that name. */
  start(name: string, env?: Record<string, string>): ReturnType<Supervisor['start']>;
  /** The children's log, in order, without their pids. */
  notes(): Promise<string[]>;
  /** The supervisor's log. */
  readonly logged: readonly { readonly level: number; readonly msg: string; readonly process: string }[];
}

async function openScene(options: Partial<SupervisorOptions> & { attempts?: number } = {}): Promise<Scene> {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-processes-'));
  const LOG = join(folder.path, 'notes.log');
  await writeFile(LOG, '');
  const logged: Scene['logged'][number][] = [];
  const log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const supervisor = new Supervisor({ log, firstDelayMs: 20, ...options });
  return {
    supervisor,
    logged,
    start: (name, env = {}) =>
      supervisor.start(
        name,
        () =>
          startChild({
            script: join(programs, 'child.ts'),
            env: { ...process.env, LOG, NAME: name, ...env },
          }),
        options.attempts,
      ),
    notes: async () => (await readFile(LOG, 'utf8')).replaceAll(/ \d+$/gm, '').split('\n').slice(0, -1),
    async [Symbol.asyncDispose]() {
      await supervisor.stop();
      await folder.remove();
    },
  };
}

it('resolves with a process’s report once it is ready', async () => {
  await using scene = await openScene();
  expect(await scene.start('serve')).toEqual({ life: 1 });
  expect(identify(scene.supervisor.pidOf('serve') ?? 0)).toBeDefined();
});

it('restarts a killed process', async () => {
  await using scene = await openScene();
  await scene.start('work');
  const first = scene.supervisor.pidOf('work') ?? 0;
  process.kill(first, 'SIGKILL');
  await until(() => scene.logged.some(({ msg }) => msg === 'work runs again'));
  expect(scene.supervisor.pidOf('work')).not.toBe(first);
  expect(scene.logged).toMatchObject([
    { level: 50, process: 'work', msg: 'work was ended by SIGKILL; the supervisor restarts it' },
    { level: 30, process: 'work', msg: 'work runs again' },
  ]);
});

it('retries if a process ends before it is ready', async () => {
  await using scene = await openScene({ attempts: 3 });
  expect(await scene.start('work', { READY_AFTER_LIVES: '2' })).toEqual({ life: 3 });
});

it('stops retrying a process that ends repeatedly before it is ready', async () => {
  await using scene = await openScene({ attempts: 3 });
  await expect(scene.start('work', { READY_AFTER_LIVES: '99' })).rejects.toThrow(
    'work ended with code 3 before it was ready, 3 times: see its output above',
  );
  expect(await scene.notes()).toEqual(['work lives', 'work lives', 'work lives']);
});

it('stops waiting for a process that runs and never becomes ready', async () => {
  await using scene = await openScene({ attempts: 1, readyWithinMs: 400 });
  await expect(scene.start('work', { SILENT: '1' })).rejects.toThrow(
    'work was not ready within 400 ms: see its output above',
  );
});

it('waits longer before each restart, up to a limit', async () => {
  await using scene = await openScene({ attempts: 5, firstDelayMs: 10, longestDelayMs: 40 });
  await expect(scene.start('work', { READY_AFTER_LIVES: '99' })).rejects.toThrow('5 times');
  expect(scene.logged.map((line) => 'delay' in line && line.delay)).toEqual([10, 20, 40, 40]);
});

it('stops processes one after the other, the last one first', async () => {
  await using scene = await openScene();
  await scene.start('work');
  await scene.start('serve');
  await scene.supervisor.stop();
  expect(await scene.notes()).toEqual(['work lives', 'serve lives', 'serve stops', 'work stops']);
  expect(scene.supervisor.pidOf('work')).toBeUndefined();
  expect(scene.logged).toEqual([]);
});

it('kills a process that does not stop in time, and logs it', async () => {
  await using scene = await openScene({ stopWithinMs: 200 });
  await scene.start('work', { IGNORES_SIGTERM: '1' });
  const pid = scene.supervisor.pidOf('work') ?? 0;
  await scene.supervisor.stop();
  expect(identify(pid)).toBeUndefined();
  expect(scene.logged).toMatchObject([
    { level: 40, process: 'work', msg: 'work did not stop within 200 ms and was killed' },
  ]);
});

it('starts nothing again once it is stopped, also in the pause before a restart', async () => {
  await using scene = await openScene({ firstDelayMs: 600_000 });
  await scene.start('work');
  process.kill(scene.supervisor.pidOf('work') ?? 0, 'SIGKILL');
  await until(() => scene.logged.length > 0);
  await scene.supervisor.stop();
  expect(await scene.notes()).toEqual(['work lives']);
  await expect(scene.start('serve')).rejects.toThrow('serve is not started: the supervisor is stopping');
});

it('can be stopped while a process is starting', async () => {
  await using scene = await openScene();
  const starting = expect(scene.start('work', { SILENT: '1' })).rejects.toThrow(
    'work was stopped before it was ready',
  );
  await until(async () => (await scene.notes()).length > 0);
  await scene.supervisor.stop();
  await starting;
});

it('notifies its processes when it is killed itself, so that they end', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-processes-'));
  const LOG = join(folder.path, 'notes.log');
  await using supervising = await startProgram(join(programs, 'supervising.ts'), [], {
    env: { ...process.env, LOG },
  });
  const { pid } = await supervising.answer();
  supervising.child.kill('SIGKILL');
  await until(() => identify(Number(pid)) === undefined, { what: 'the end of the orphaned process' });
  expect(await readFile(LOG, 'utf8')).toMatch(/child is alone\n$/);
});

it('does not retry a process that reports a permanent error', async () => {
  await using scene = await openScene();
  const starting = scene.start('serve', { HOPELESS: 'PORT is taken' });
  await expect(starting).rejects.toMatchObject({ name: 'HopelessStart', message: 'PORT is taken' });
  expect(await scene.notes()).toEqual(['serve lives']);
  expect(scene.logged).toEqual([]);
});

it('stops all at once on request, however long one of them takes', async () => {
  await using scene = await openScene({ stopTogether: true });
  await scene.start('quick');
  await scene.start('stubborn', { IGNORES_SIGTERM: '1' });
  const stopping = scene.supervisor.stop();
  await until(async () => (await scene.notes()).includes('quick stops'));
  const stubborn = scene.supervisor.pidOf('stubborn') ?? 0;
  expect(identify(stubborn)).toBeDefined();
  process.kill(stubborn, 'SIGKILL');
  await stopping;
});

it('counts ready processes, and reports each replacement', async () => {
  const replaced: string[] = [];
  await using scene = await openScene({ onRestart: (name) => void replaced.push(name) });
  await Promise.all([scene.start('one'), scene.start('other')]);
  expect(scene.supervisor.ready).toBe(2);
  process.kill(scene.supervisor.pidOf('one') ?? 0, 'SIGKILL');
  await until(() => replaced.length === 1);
  await until(() => scene.supervisor.ready === 2);
  expect(replaced).toEqual(['one']);
});
