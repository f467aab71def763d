/** A process that dumps as fast as it can, and is killed at random moments. */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import type { LoadedDump } from '../../../src/snapshot/read/documents.ts';
import { Dump } from '../../../src/snapshot/read/dump.ts';
import { startProgram } from '../../support/program.ts';
import { runs } from '../../support/random.ts';
import { until } from '../../support/until.ts';

const WRITER = new URL('./programs/dump-writer.ts', import.meta.url).pathname;
const KILLS = runs(15);

it(`after ${KILLS} kills the dump is whole, and never goes back`, async () => {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-kill-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  let found = 0;
  let first = 1;
  let dumped = 0;
  for (let round = 0; round < KILLS; round++) {
    const writer = await startProgram(WRITER, [folder, String(first)]);
    const atLeast = 1 + Math.floor(Math.random() * 60);
    await until(() => writer.output().split('\n').length > atLeast, { everyMs: 1 });
    const closed = once(writer.child, 'close');
    writer.child.kill('SIGKILL');
    // `close` comes after the last output.
    await closed;
    const printed = [...writer.output().matchAll(/^(\d+)$/gm)].map(([, version]) => Number(version));
    const last = printed.at(-1) ?? 0;
    first = last + 1;
    const read = await readDumpIn(folder);
    if (!read) continue;
    found += 1;
    expect(read.documents.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5].map((id) => `region:${id}`));
    for (const { document } of read.documents) {
      const { version } = document;
      expect(version).toBe(read.documents[0]?.document.version);
      expect(version).toBeGreaterThanOrEqual(dumped);
      expect(version).toBeLessThanOrEqual(last);
      const machines = JSON.parse(document.body.identity.toString()) as { price: number }[];
      expect(new Set(machines.map(({ price }) => price))).toEqual(new Set([version]));
    }
    dumped = read.documents[0]?.document.version ?? 0;
  }
  expect(found).toBeGreaterThan(0);
  // A killed writer may leave its last file, which the next one replaces.
  expect(['documents.dump', 'documents.dump.new']).toEqual(expect.arrayContaining(readdirSync(folder)));
}, 300_000);

async function readDumpIn(folder: string): Promise<LoadedDump | undefined> {
  let found: LoadedDump | undefined;
  const documents = {
    dump: () => undefined,
    insertDump: (content: LoadedDump) => {
      found = content;
    },
  };
  const logged: unknown[] = [];
  const logger = pino({}, { write: (line: string) => logged.push(line) });
  await using dump = new Dump({ folder, documents, logger, limit: 16_000_000 });
  await dump.loaded;
  expect(logged).toEqual([]);
  return found;
}
