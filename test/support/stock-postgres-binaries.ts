/** Finds this system's PostgreSQL, for the tests about statements in CI. */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { installer } from '../../src/dev/system-package.ts';
import { onPath } from '../../src/processes/on-path.ts';
import { STOCK_POSTGRES } from './stock-postgres-setting.ts';

export interface StockPostgres {
  /** The folder of its programs; undefined if absent. */
  readonly bin: string | undefined;
  /** For the summary of the tests. */
  readonly line: string;
}

/** Returns the one of the environment, else in CI that of the system's packages, which it installs if missing. */
export async function stockPostgres(): Promise<StockPostgres | undefined> {
  const named = process.env[STOCK_POSTGRES];
  if (named) return described(named);
  if (!process.env.CI) return undefined;
  const install = packaged() === undefined ? installer(onPath) : undefined;
  const trouble = await install?.('postgresql');
  const bin = packaged();
  if (bin !== undefined) return described(bin);
  const why = trouble ?? 'this system has none, and installing it takes apt-get and root';
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

function described(bin: string): StockPostgres {
  const version = execFileSync(join(bin, 'postgres'), ['--version'], { encoding: 'utf8' }).trim();
  return { bin, line: `the tests about statements ran on ${version} of ${bin}` };
}
