import { execFile } from 'node:child_process';
import { mkdtempDisposable, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { troubles, underLoad, wrongOrNone } from './support/row.ts';
import { startTestPostgres } from './support/stack.ts';

const run = promisify(execFile);
const SIZE_MB = 400;
const MB = Buffer.alloc(1_000_000);

it('memory and Redis answer while the disk of PostgreSQL is full, and nothing committed is lost', async (test) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-full-'));
  // Only root can mount a disk for it.
  const mounted = await run('mount', [
    '-t',
    'tmpfs',
    '-o',
    `size=${SIZE_MB}m,mode=755`,
    'tmpfs',
    folder.path,
  ]).catch(() => undefined);
  if (!mounted) test.skip('a disk that is small needs root');
  await using undo = new AsyncDisposableStack();
  undo.defer(async () => {
    await run('umount', ['--lazy', folder.path]);
  });
  const filler = join(folder.path, 'filler');
  const outcome = await underLoad({
    fault: 'The disk of PostgreSQL is full for {seconds}',
    stack: { postgres: () => startTestPostgres(join(folder.path, 'postgres')) },
    async strike() {
      // The log has no room either, so the server stops itself.
      await expect(
        (async () => {
          for (let mb = 0; mb <= SIZE_MB; mb++) await writeFile(filler, MB, { flag: 'a' });
        })(),
      ).rejects.toMatchObject({ code: 'ENOSPC' });
    },
    async heal({ postgres }) {
      await rm(filler);
      await postgres.restart();
    },
  });
  expect(troubles(wrongOrNone(outcome.measured))).toEqual({});
});
