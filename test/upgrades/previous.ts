/**
 * `npm run test:previous`: runs tests of the previous release, with its code and the migrations of this one. They show that its
 * processes work during a rolling update, and again after a way back. Arguments go to vitest, instead of the usual test files.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtempDisposable, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { inPackage, VERSION } from '../../src/config/package.ts';
import { UPGRADES } from '../../src/config/upgrades.ts';

const run = promisify(execFile);
/** The contract of the API on real servers, and the tests of reads and writes in PostgreSQL. */
const FILES = [
  'test/http/contract.test.ts',
  'test/http/access-stack.test.ts',
  'test/http/invalidation.test.ts',
  'test/http/sold-out.test.ts',
  'test/snapshot/tokens.test.ts',
  'test/snapshot/isolation.test.ts',
  'test/db/references.test.ts',
  'test/sync/catalogue.test.ts',
  'test/sync/clusters.test.ts',
];
/** Tests of an earlier release may not know deadlines that a busy machine meets. */
const RETRIES = '--retry=2';

const { previous } = UPGRADES.find(({ release }) => release === VERSION) ?? {};
if (!previous) {
  console.error(`docs/upgrades/${VERSION}.json is missing, or src/config/upgrades.ts does not import it`);
  process.exit(1);
}
const { release, revision } = previous;
const args = process.argv.slice(2);
process.exitCode = await (async () => {
  const root = inPackage();
  const hasCommit = await run('git', ['cat-file', '-e', `${revision}^{commit}`], { cwd: root }).then(
    () => true,
    () => false,
  );
  if (!hasCommit) {
    console.log(`skipped: this clone has no commit ${revision} of ${release}: run git fetch --unshallow`);
    return 0;
  }
  await using folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-previous-'));
  const archive = join(folder.path, 'release.tar');
  await run('git', ['archive', '-o', archive, revision], { cwd: root });
  await run('tar', ['-xf', archive, '-C', folder.path]);
  await rm(join(folder.path, 'drizzle'), { recursive: true });
  await cp(inPackage('drizzle'), join(folder.path, 'drizzle'), { recursive: true });
  await symlink(inPackage('node_modules'), join(folder.path, 'node_modules'));
  console.log(`tests of ${release} (${revision.slice(0, 12)}) with the migrations of ${VERSION}`);
  const vitest = inPackage('node_modules/vitest/vitest.mjs');
  const files = args.length > 0 ? args : FILES;
  const tests = spawn(process.execPath, [vitest, 'run', '--project', 'main', RETRIES, ...files], {
    cwd: folder.path,
    stdio: 'inherit',
  });
  const [code] = (await once(tests, 'close')) as [number | null];
  return code ?? 1;
})();
