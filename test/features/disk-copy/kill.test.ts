/** A process that writes its disk copy as fast as it can, and is killed at random moments. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CopyFolder } from '../../../src/features/disk-copy/copy-folder.ts';
import { regionContent } from '../../../src/snapshot/document/build.ts';
import { decodeDocument } from '../../../src/snapshot/document/format.ts';
import { startProgram } from '../../support/program.ts';
import { until } from '../../support/until.ts';
import { LIMITS, LINEAGE, REGIONS, regionOf, tokenOf } from './programs/world.ts';

const WRITER = new URL('./programs/writer.ts', import.meta.url).pathname;
const KILLS = 20;
/** A version that was replaced this long (ms) before the kill must not be on disk: one second, and some time for the disk. */
const LOST_MS = 1000 + 500;

it(`after ${KILLS} kills the copy is whole, and lost one second at most and no revocation`, async () => {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-kill-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  let found = 0;
  let accepted = 0;
  let first = 1;
  for (let round = 0; round < KILLS; round++) {
    const writer = await startProgram(WRITER, [folder, String(first)]);
    const atLeast = 1 + Math.floor(Math.random() * 300);
    await until(() => writer.output().split('\n').length > atLeast, { everyMs: 1 });
    const closed = once(writer.child, 'close');
    writer.child.kill('SIGKILL');
    const killedAt = Date.now();
    // `close` comes after the last output.
    await closed;
    /** Region → the last version, and the last one a second before the kill. */
    const last = new Map<number, number>();
    const bound = new Map<number, number>();
    for (const [, region, version, at] of writer.output().matchAll(/^(\d+) (\d+) (\d+)$/gm)) {
      last.set(Number(region), Number(version));
      if (Number(at) < killedAt - LOST_MS) bound.set(Number(region), Number(version));
      first = Math.max(first, Number(version) + 1);
    }
    const copy = new CopyFolder(folder, LIMITS);
    for (let region = 1; region <= REGIONS; region++) {
      const stored = await copy.read(LINEAGE, `region:${region}`);
      if (!stored) continue;
      found += 1;
      const document = decodeDocument({ kind: 'region', regionId: region }, stored.value);
      expect(document?.version).toBe(stored.version);
      expect(stored.version).toBeGreaterThanOrEqual(bound.get(region) ?? 0);
      // The last version may be written and not printed.
      expect(stored.version).toBeLessThanOrEqual((last.get(region) ?? stored.version) + 1);
      expect(document?.body.identity).toEqual(regionContent(...regionOf(region, stored.version)).body);
    }
    const revoked = new Set<string>();
    for (const [, number] of writer.output().matchAll(/^revoked (\d+)$/gm))
      revoked.add(tokenOf(Number(number)));
    for (const id of revoked) expect([id, await copy.read(LINEAGE, id)]).toEqual([id, undefined]);
    for (const [, number] of writer.output().matchAll(/^accepted (\d+)$/gm))
      if (await copy.read(LINEAGE, tokenOf(Number(number)))) accepted += 1;
  }
  // The test must have covered both.
  expect(found).toBeGreaterThan(0);
  expect(accepted).toBeGreaterThan(0);
}, 300_000);
