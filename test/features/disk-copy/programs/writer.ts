/**
 * Writes newer and newer versions of a few documents to a disk copy, as a reader does, until it is killed. Prints each
 * version before an answer may contain it: `<region> <version> <time>`. Every version has a token, and every second token
 * is revoked soon: `accepted <number>` and `revoked <number>`. Arguments: the folder, the first version.
 */
import { writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { pino } from 'pino';
import { DiskCopy } from '../../../../src/features/disk-copy/disk-copy.ts';
import { regionContent } from '../../../../src/snapshot/document/build.ts';
import { encoding } from '../../../../src/snapshot/document/format.ts';
import { LIMITS, LINEAGE, REGIONS, regionOf, tokenOf } from './world.ts';

const [folder = '', first = '1'] = process.argv.slice(2);
const copy = new DiskCopy({ folder, limits: LIMITS, logger: pino({ level: 'silent' }), everyMs: 5 });
copy.follow(LINEAGE, true);
// Written at once: the parent must know every version, even if this process is killed next.
const print = (line: string) => writeSync(1, `${line}\n`);
const read = () => ({ epoch: 1, at: Date.now() });
for (let version = Number(first); ; version++) {
  for (let region = 1; region <= REGIONS; region++) {
    const { document } = encoding(regionContent(...regionOf(region, version)));
    copy.onServed({ id: `region:${region}` }, { document, ...read() });
    print(`${region} ${version} ${Date.now()}`);
  }
  // The content is arbitrary: the copy stores bytes.
  const { document } = encoding(regionContent(...regionOf(1, 1)));
  copy.onServed({ id: tokenOf(version) }, { document, ...read() });
  print(`accepted ${version}`);
  // The disk keeps up with a real reader. This loop would be faster.
  await pause(10);
  const earlier = version - 2;
  if (earlier % 2 === 0) {
    copy.onPublished(tokenOf(earlier), 2);
    print(`revoked ${earlier}`);
  }
}
