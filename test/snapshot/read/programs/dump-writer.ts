/**
 * Dumps newer and newer versions of a few documents, as a reader does, until it is killed. Prints each version before a dump may
 * contain it. Arguments: the folder, the first version.
 */
import { writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { pino } from 'pino';
import { type MachineRow, regionContent } from '../../../../src/snapshot/document/build.ts';
import { encoding } from '../../../../src/snapshot/document/format.ts';
import { Dump } from '../../../../src/snapshot/read/dump.ts';
import type { DumpedDocument } from '../../../../src/snapshot/read/memory.ts';

const [folder = '', first = '1'] = process.argv.slice(2);
const REGIONS = 5;
let documents: readonly DumpedDocument[] = [];
const memory = { dump: () => ({ lineage: 'of the test', documents }), insertDump: () => {} };
new Dump({ folder, documents: memory, logger: pino({ level: 'silent' }), limit: 16_000_000, everyMs: 5 });

/** A document whose size varies. The version is the price of each machine. */
function dumped(regionId: number, version: number): DumpedDocument {
  const region = { id: regionId, code: 'r', name: 'Region', version, provider: { id: 1, name: 'Cloud' } };
  const machines = Array.from({ length: 1 + ((version * 37) % 400) }, (_, i): MachineRow => {
    return { id: i + 1, name: `m${i}`, ram: 4, cpu: 2, price: version, ramUnit: 'Binary' };
  });
  const { document } = encoding(regionContent(region, machines, { sources: ['cloud'], currency: 'USD' }));
  return { id: `region:${regionId}`, document, at: Date.now(), asOf: undefined };
}

for (let version = Number(first); ; version++) {
  // Written at once: the parent must know every version, even if this process is killed next.
  writeSync(1, `${version}\n`);
  documents = Array.from({ length: REGIONS }, (_, i) => dumped(i + 1, version));
  await pause(10);
}
