/**
 * `node test/upgrades/make-fixture.ts <version>`: runs this release on new servers, and writes what it stores and answers into
 * `test/upgrades/<version>`.
 */
import { inPackage } from '../../src/config/package.ts';
import { writeFixture } from './support/fixture.ts';
import { fleetOf } from './support/fleet.ts';

const [release] = process.argv.slice(2);
if (release === undefined || !/^[\w.-]+$/.test(release)) {
  console.error('usage: node test/upgrades/make-fixture.ts <version>');
  process.exit(2);
}
const notify = (step: string) => console.log(`${release}: ${step}`);
const fleet = await fleetOf(inPackage('src/cli.ts'), notify);
const folder = await writeFixture({ release, ...fleet });
notify(`${fleet.answers.length} answers and ${fleet.cache.length} keys are in ${folder}`);
