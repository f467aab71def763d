/**
 * Gives newer and newer versions of a few documents through a disk copy, as a reader does, until it is killed. Prints
 * each version once it may be given: `<region> <version>`. Arguments: the folder, the first version.
 */
import { writeSync } from 'node:fs';
import { pino } from 'pino';
import { DiskCopy } from '../../../../src/snapshot/disk/disk-copy.ts';
import { regionContent } from '../../../../src/snapshot/document/build.ts';
import { encoding } from '../../../../src/snapshot/document/format.ts';
import { LIMITS, LINEAGE, REGIONS, regionOf } from './world.ts';

const [folder = '', first = '1'] = process.argv.slice(2);
const logger = pino({ level: 'silent' });
// However busy the machine is: what is given without waiting may be lost.
const putOutMs = { first: 60_000, later: 60_000 };
const copy = new DiskCopy({ folder, limits: LIMITS, logger, everyMs: 5, putOutMs });
copy.follow(LINEAGE, true);
for (let version = Number(first); ; version++) {
  for (let region = 1; region <= REGIONS; region++) {
    const { document } = encoding(regionContent(...regionOf(region, version)));
    await copy.supersede(`region:${region}`, document);
    // At once, whatever becomes of this process: the parent has to know what was given.
    writeSync(1, `${region} ${version}\n`);
    copy.keep(`region:${region}`, document, { epoch: 1, at: Date.now() });
  }
}
