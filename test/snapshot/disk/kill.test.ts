/** A process that writes its disk copy as fast as it can, killed at random moments. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CopyFile } from '../../../src/snapshot/disk/copy-file.ts';
import { regionContent } from '../../../src/snapshot/document/build.ts';
import { decodeDocument } from '../../../src/snapshot/document/format.ts';
import { startProgram } from '../../support/program.ts';
import { until } from '../../support/until.ts';
import { LIMITS, LINEAGE, REGIONS, regionOf } from './programs/world.ts';

const WRITER = new URL('./programs/writer.ts', import.meta.url).pathname;
const KILLS = 20;

it(`killed ${KILLS} times, the copy has what was given last or nothing, whole, and nothing older`, async () => {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-kill-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  /** Region → the last version that any of the processes gave. */
  const given = new Map<number, number>();
  let found = 0;
  let missing = 0;
  for (let round = 0; round < KILLS; round++) {
    const first = Math.max(0, ...given.values()) + 1;
    const writer = await startProgram(WRITER, [folder, String(first)]);
    const atLeast = 1 + Math.floor(Math.random() * 300);
    await until(() => writer.output().split('\n').length > atLeast, { everyMs: 1 });
    const closed = once(writer.child, 'close');
    writer.child.kill('SIGKILL');
    // Later than its end: what it printed last is read then.
    await closed;
    for (const [, region, version] of writer.output().matchAll(/^(\d+) (\d+)$/gm))
      given.set(Number(region), Number(version));

    const file = new CopyFile(folder, LIMITS);
    const now = Date.now();
    for (let region = 1; region <= REGIONS; region++) {
      const stored = file.read(LINEAGE, `region:${region}`, now - LIMITS.staleLimitMs, now);
      if (!stored) {
        missing += 1;
        continue;
      }
      found += 1;
      const document = decodeDocument({ kind: 'region', regionId: region }, Buffer.from(stored.value));
      expect(document?.version).toBe(stored.version);
      // One version may have been put down and not printed any more.
      const last = given.get(region) ?? 0;
      expect([last, last + 1]).toContain(stored.version);
      expect(document?.body.identity).toEqual(regionContent(...regionOf(region, stored.version)).body);
    }
    file.close();
  }
  // Both must have been tried.
  expect(found).toBeGreaterThan(0);
  expect(missing).toBeGreaterThan(0);
  expect(found + missing).toBe(KILLS * REGIONS);
}, 300_000);
