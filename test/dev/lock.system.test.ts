import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, mkdtempDisposable, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { LockedError, takeLock } from '../../src/dev/lock.ts';
import { identify } from '../../src/dev/process-identity.ts';
import { startProgram } from '../support/program.ts';

const PROGRAM = join(import.meta.dirname, 'programs/lock.ts');
const RACER = join(import.meta.dirname, 'programs/lock-race.ts');

async function place(): Promise<{ path: string } & AsyncDisposable> {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-lock-'));
  return { path: join(folder.path, 'up.lock'), [Symbol.asyncDispose]: () => folder.remove() };
}

it('is held until it is released, also against its own process', async () => {
  await using here = await place();
  const lock = takeLock(here.path);
  expect(lock.takenOver).toBe(false);
  expect(() => takeLock(here.path)).toThrow(new LockedError(here.path, process.pid));
  lock[Symbol.dispose]();
  using again = takeLock(here.path);
  expect(again.takenOver).toBe(false);
});

it('names the live process that holds it', async () => {
  await using here = await place();
  await using holder = await startProgram(PROGRAM, [here.path]);
  expect(await holder.answer()).toEqual({ got: 1, takenOver: 0 });
  expect(() => takeLock(here.path)).toThrow(`process ${holder.pid} has the lock ${here.path}`);
});

it('is replaced if its process was killed', async () => {
  await using here = await place();
  await using holder = await startProgram(PROGRAM, [here.path]);
  await holder.answer();
  holder.child.kill('SIGKILL');
  await holder.exited;
  using lock = takeLock(here.path);
  expect(lock.takenOver).toBe(true);
});

it.each([
  {
    left: 'a process whose number another one has now',
    content: JSON.stringify({ pid: process.pid, started: 'earlier' }),
  },
  { left: 'a process that wrote only half of it', content: '{"pid": 1' },
])('is replaced if it was left by $left', async ({ content }) => {
  await using here = await place();
  await writeFile(here.path, content);
  using lock = takeLock(here.path);
  expect(lock.takenOver).toBe(true);
});

it('is not released by a former holder', async () => {
  await using here = await place();
  const first = takeLock(here.path);
  const someoneElse = JSON.stringify({ ...identify(process.ppid) });
  await writeFile(here.path, someoneElse);
  first[Symbol.dispose]();
  expect(() => takeLock(here.path)).toThrow(`process ${process.ppid} has the lock`);
});

it('goes to only one of several processes that replace a stale one at the same moment', async () => {
  await using here = await place();
  await writeFile(here.path, JSON.stringify({ pid: 2 ** 22 + 1, started: 'long ago' }));
  const at = String(Date.now() + 1_500);
  await using stack = new AsyncDisposableStack();
  const takers = await Promise.all(Array.from({ length: 5 }, () => startProgram(PROGRAM, [here.path, at])));
  for (const taker of takers) stack.use(taker);
  const answers = await Promise.all(takers.map((taker) => taker.answer()));
  expect(answers.filter(({ got }) => got === 1)).toEqual([{ got: 1, takenOver: 1 }]);
  expect(await readdir(dirname(here.path))).toEqual([basename(here.path)]);
});

const DEAD = JSON.stringify({ pid: 2 ** 22 + 1, started: 'long ago' });
/** The file of a process that replaces a stale lock. */
const claimOn = (path: string, dead: string) =>
  `${path}.after.${createHash('sha256').update(dead).digest('hex')}`;

it('is replaced if its process died while it replaced another, and so is the next', async () => {
  await using here = await place();
  const heirs = ['first', 'second'].map((started) => JSON.stringify({ pid: 2 ** 22 + 2, started }));
  await writeFile(here.path, DEAD);
  await writeFile(claimOn(here.path, DEAD), heirs[0] ?? '');
  await writeFile(claimOn(here.path, heirs[0] ?? ''), heirs[1] ?? '');
  using lock = takeLock(here.path);
  expect(lock.takenOver).toBe(true);
  expect(await readdir(dirname(here.path))).toEqual([basename(here.path)]);
  expect(() => takeLock(here.path)).toThrow(`process ${process.pid} has the lock`);
});

it('is replaced if a process of the same id died directly after it wrote the file', async () => {
  await using here = await place();
  await writeFile(here.path, DEAD);
  await link(here.path, `${here.path}.${process.pid}`);
  using lock = takeLock(here.path);
  expect(lock.takenOver).toBe(true);
});

it('is not replaced while a live process is about to replace it', async () => {
  await using here = await place();
  await writeFile(here.path, DEAD);
  await writeFile(claimOn(here.path, DEAD), JSON.stringify({ ...identify(process.ppid) }));
  expect(() => takeLock(here.path)).toThrow(`process ${process.ppid} has the lock`);
  expect(await readFile(here.path, 'utf8')).toBe(DEAD);
});

it('always has exactly one holder while any number of processes replace it', async () => {
  await using here = await place();
  await writeFile(here.path, DEAD);
  const start = `${here.path}-start`;
  await using stack = new AsyncDisposableStack();
  const racers = await Promise.all(
    Array.from({ length: 4 }, () => startProgram(RACER, [here.path, start, '20'])),
  );
  for (const racer of racers) stack.use(racer);
  await Promise.all(racers.map((racer) => racer.answer()));
  await writeFile(start, '');
  let isOver = false;
  const answering = Promise.all(racers.map((racer) => racer.answer())).finally(() => {
    isOver = true;
  });
  let gone = 0;
  while (!isOver) {
    if (!existsSync(here.path)) gone += 1;
    await setImmediate();
  }
  const answers = await answering;
  expect({ gone, together: answers.map(({ together }) => together) }).toEqual({
    gone: 0,
    together: [0, 0, 0, 0],
  });
});
