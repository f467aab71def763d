/** Finds this system's PostgreSQL, for the tests about statements in CI and for `npm run test:stock`. */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { installer } from '../../src/dev/system-package.ts';
import { findProgram } from '../../src/processes/find-program.ts';
import { STOCK_POSTGRES, TEST_POSTGRES } from './stock-postgres-setting.ts';

export interface StockPostgres {
  /** The folder of its programs; undefined if absent. */
  readonly bin: string | undefined;
  /** For the summary of the tests. */
  readonly line: string;
}

/**
 * Returns the one of the environment, else in CI that of the system's packages, which it installs if missing.
 * @throws Error if `TEST_POSTGRES=stock` and there is none
 */
export async function stockPostgres(): Promise<StockPostgres | undefined> {
  const wanted = process.env[TEST_POSTGRES] ?? '';
  if (!['', 'stock', 'embedded'].includes(wanted))
    throw new Error(`${TEST_POSTGRES} must be stock or embedded; it is ${JSON.stringify(wanted)}`);
  if (wanted === 'embedded') return undefined;
  const isForAll = wanted === 'stock';
  const named = process.env[STOCK_POSTGRES];
  if (named) return described(named, isForAll);
  if (!process.env.CI && !isForAll) return undefined;
  const install = packaged() === undefined ? installer(findProgram) : undefined;
  const trouble = await install?.('postgresql');
  const bin = packaged();
  if (bin !== undefined) return described(bin, isForAll);
  const why = trouble ?? 'this system has none, and installing it takes apt-get and root';
  if (isForAll) throw new Error(`there is no PostgreSQL of the system's packages: ${why}`);
  return {
    bin: undefined,
    line: `left out: the tests about statements on a PostgreSQL that compiles them (${why}); they ran on the embedded one`,
  };
}

/** The oldest of Debian's packages, which is nearest to the oldest supported release. */
function packaged(): string | undefined {
  return globSync('/usr/lib/postgresql/*/bin/postgres')
    .map((path) => join(path, '..'))
    .filter((bin) => existsSync(join(bin, 'initdb')))
    .sort((a, b) => majorOf(a) - majorOf(b))[0];
}

const majorOf = (bin: string) => Number(/postgresql\/(\d+)/.exec(bin)?.[1] ?? 0);

function described(bin: string, isForAll: boolean): StockPostgres {
  const version = execFileSync(join(bin, 'postgres'), ['--version'], { encoding: 'utf8' }).trim();
  const tests = isForAll ? 'all tests that share a server' : 'the tests about statements';
  return { bin, line: `${tests} ran on ${version} of ${bin}` };
}
