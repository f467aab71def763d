import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { identify } from '../../src/dev/process-identity.ts';
import { keepProcesses, type Processes, type ProcessesOptions } from '../../src/processes/processes.ts';
import { startProgram } from '../support/program.ts';
import { until } from '../support/until.ts';

const programs = join(import.meta.dirname, 'programs');

interface Kept extends AsyncDisposable {
  readonly processes: Processes;
  /** Starts child.ts under that name. */
  start(name: string, env?: Record<string, string>): ReturnType<Processes['start']>;
  /** What the children noted, in order, without their pids. */
  notes(): Promise<string[]>;
  /** What the keeper logged. */
  readonly logged: readonly { readonly level: number; readonly msg: string; readonly process: string }[];
}

async function keep(options: Partial<ProcessesOptions> = {}): Promise<Kept> {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-processes-'));
  const LOG = join(folder.path, 'notes.log');
  await writeFile(LOG, '');
  const logged: Kept['logged'][number][] = [];
  const log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const processes = keepProcesses({ log, firstDelayMs: 20, ...options });
  return {
    processes,
    logged,
    start: (name, env = {}) =>
      processes.start({
        name,
        script: join(programs, 'child.ts'),
        env: { ...process.env, LOG, NAME: name, ...env },
      }),
    notes: async () => (await readFile(LOG, 'utf8')).replaceAll(/ \d+$/gm, '').split('\n').slice(0, -1),
    async [Symbol.asyncDispose]() {
      await processes.stop();
      await folder.remove();
    },
  };
}

it('resolves with what a process reports when it is ready', async () => {
  await using kept = await keep();
  expect(await kept.start('serve')).toEqual({ life: 1 });
  expect(identify(kept.processes.pidOf('serve') ?? 0)).toBeDefined();
});

it('starts a process again that was killed', async () => {
  await using kept = await keep();
  await kept.start('work');
  const first = kept.processes.pidOf('work') ?? 0;
  process.kill(first, 'SIGKILL');
  await until(() => kept.logged.some(({ msg }) => msg === 'ready again'));
  expect(kept.processes.pidOf('work')).not.toBe(first);
  expect(kept.logged).toMatchObject([
    { level: 50, process: 'work', msg: 'was ended by SIGKILL; starting it again' },
    { level: 30, process: 'work', msg: 'ready again' },
  ]);
});

it('tries again when a process ends before it is ready', async () => {
  await using kept = await keep({ attempts: 3 });
  expect(await kept.start('work', { READY_AFTER_LIVES: '2' })).toEqual({ life: 3 });
});

it('gives a process up that ends again and again before it is ready', async () => {
  await using kept = await keep({ attempts: 3 });
  await expect(kept.start('work', { READY_AFTER_LIVES: '99' })).rejects.toThrow(
    'work ended with code 3 before it was ready, 3 times: see its output above',
  );
  expect(await kept.notes()).toEqual(['work lives', 'work lives', 'work lives']);
});

it('gives a process up that runs and never becomes ready', async () => {
  await using kept = await keep({ attempts: 1, readyWithinMs: 400 });
  await expect(kept.start('work', { SILENT: '1' })).rejects.toThrow(
    'work was not ready within 400 ms: see its output above',
  );
});

it('waits longer before each restart, up to a limit', async () => {
  await using kept = await keep({ attempts: 5, firstDelayMs: 10, longestDelayMs: 40 });
  await expect(kept.start('work', { READY_AFTER_LIVES: '99' })).rejects.toThrow('5 times');
  expect(kept.logged.map((line) => 'delay' in line && line.delay)).toEqual([10, 20, 40, 40]);
});

it('stops processes one after the other, the last one first', async () => {
  await using kept = await keep();
  await kept.start('work');
  await kept.start('serve');
  await kept.processes.stop();
  expect(await kept.notes()).toEqual(['work lives', 'serve lives', 'serve stops', 'work stops']);
  expect(kept.processes.pidOf('work')).toBeUndefined();
  expect(kept.logged).toEqual([]);
});

it('kills a process that does not stop in time, and says so', async () => {
  await using kept = await keep({ stopWithinMs: 200 });
  await kept.start('work', { DEAF: '1' });
  const pid = kept.processes.pidOf('work') ?? 0;
  await kept.processes.stop();
  expect(identify(pid)).toBeUndefined();
  expect(kept.logged).toMatchObject([
    { level: 40, process: 'work', msg: 'did not stop within 200 ms and was killed' },
  ]);
});

it('starts nothing again once it is stopped, also in the pause before a restart', async () => {
  await using kept = await keep({ firstDelayMs: 600_000 });
  await kept.start('work');
  process.kill(kept.processes.pidOf('work') ?? 0, 'SIGKILL');
  await until(() => kept.logged.length > 0);
  await kept.processes.stop();
  expect(await kept.notes()).toEqual(['work lives']);
  await expect(kept.start('serve')).rejects.toThrow('serve is not started any more');
});

it('can be stopped while a process is starting', async () => {
  await using kept = await keep();
  const starting = expect(kept.start('work', { SILENT: '1' })).rejects.toThrow(
    'work was stopped before it was ready',
  );
  await until(async () => (await kept.notes()).length > 0);
  await kept.processes.stop();
  await starting;
});

it('tells its processes when it is killed itself, so that they end', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-processes-'));
  const LOG = join(folder.path, 'notes.log');
  await using keeper = await startProgram(join(programs, 'keeper.ts'), [], { env: { ...process.env, LOG } });
  const { pid } = await keeper.answer();
  keeper.child.kill('SIGKILL');
  await until(() => identify(Number(pid)) === undefined, { what: 'the end of the orphaned process' });
  expect(await readFile(LOG, 'utf8')).toMatch(/child is alone\n$/);
});

it('tries a process only once that tells why trying again is in vain', async () => {
  await using kept = await keep();
  const starting = kept.start('serve', { HOPELESS: 'PORT is taken' });
  await expect(starting).rejects.toMatchObject({ name: 'HopelessStart', message: 'PORT is taken' });
  expect(await kept.notes()).toEqual(['serve lives']);
  expect(kept.logged).toEqual([]);
});

it('stops all at once where that is asked for, whatever one of them takes', async () => {
  await using kept = await keep({ stopTogether: true });
  await kept.start('quick');
  await kept.start('deaf', { DEAF: '1' });
  const stopping = kept.processes.stop();
  await until(async () => (await kept.notes()).includes('quick stops'));
  const deaf = kept.processes.pidOf('deaf') ?? 0;
  expect(identify(deaf)).toBeDefined();
  process.kill(deaf, 'SIGKILL');
  await stopping;
});

it('counts those that are ready, and tells of each that has to be replaced', async () => {
  const replaced: string[] = [];
  await using kept = await keep({ onRestart: (name) => void replaced.push(name) });
  await Promise.all([kept.start('one'), kept.start('other')]);
  expect(kept.processes.ready).toBe(2);
  process.kill(kept.processes.pidOf('one') ?? 0, 'SIGKILL');
  await until(() => replaced.length === 1);
  await until(() => kept.processes.ready === 2);
  expect(replaced).toEqual(['one']);
});
