/**
 * `npm run release:fixture -- <version>`: runs this release on new servers, and writes what it stores and answers into
 * `test/upgrades/<version>`. `--revision <commit>` runs an earlier commit instead.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inPackage } from '../../src/config/package.ts';
import { releaseOf } from '../faults/support/release.ts';
import { writeFixture } from './support/fixture.ts';
import { fleetOf } from './support/fleet.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { revision: { type: 'string' } },
});
const [release] = positionals;
if (release === undefined || !/^[\w.-]+$/.test(release)) {
  console.error('usage: npm run release:fixture -- <version> [--revision <commit>]');
  process.exit(2);
}
const { revision } = values;
const notify = (step: string) => console.log(`${release}: ${step}`);
await using earlier = revision === undefined ? undefined : await releaseOf(revision);
if (revision !== undefined && earlier === undefined) {
  console.error(`this clone has no commit ${revision}: run git fetch --unshallow`);
  process.exit(1);
}
const { migrations, ...fleet } = await fleetOf(earlier?.cli ?? inPackage('src/cli.ts'), notify);
const journal = join(earlier?.migrations ?? inPackage('drizzle'), 'meta/_journal.json');
const { entries } = JSON.parse(await readFile(journal, 'utf8')) as { entries: { tag: string }[] };
const migration = entries[migrations - 1]?.tag ?? '';
const folder = await writeFixture({
  release,
  ...(revision === undefined ? {} : { revision }),
  migration,
  ...fleet,
});
notify(`${fleet.answers.length} answers and ${fleet.cache.length} keys are in ${folder}`);
