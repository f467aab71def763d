/**
 * Gives newer and newer versions of a few documents through a disk copy, as a reader does, until it is killed. Prints
 * each version as it may be given: `<region> <version> <time>`. Every version comes with a token, and every second token
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
// At once, whatever becomes of this process: the parent has to know what was given.
const print = (line: string) => writeSync(1, `${line}\n`);
const read = () => ({ epoch: 1, at: Date.now() });
for (let version = Number(first); ; version++) {
  for (let region = 1; region <= REGIONS; region++) {
    const { document } = encoding(regionContent(...regionOf(region, version)));
    copy.given(`region:${region}`, document);
    print(`${region} ${version} ${Date.now()}`);
    copy.keep(`region:${region}`, document, read());
  }
  // Whatever its content is: the copy gives back bytes.
  const { document } = encoding(regionContent(...regionOf(1, 1)));
  copy.given(tokenOf(version), document);
  copy.keep(tokenOf(version), document, read());
  print(`accepted ${version}`);
  // The disk keeps up, as it does with a reader.
  await pause(10);
  const earlier = version - 2;
  if (earlier % 2 === 0) {
    copy.heard(tokenOf(earlier), 2);
    print(`revoked ${earlier}`);
  }
}
