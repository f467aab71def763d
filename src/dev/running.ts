import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { identify, isAlive, type ProcessIdentity } from './process-identity.ts';

/** The settings of a running `up`, for other commands. The file is 0600, because it contains passwords. */
interface Running {
  readonly process: ProcessIdentity;
  readonly environment: Readonly<Record<string, string>>;
  readonly addresses?: Addresses | undefined;
}

export interface Addresses {
  readonly api: string;
  readonly operators: string;
}

const FILE = 'running.json';

export function announceRunning(
  folder: string,
  environment: Readonly<Record<string, string>>,
  addresses?: Addresses,
): Disposable {
  const self = identify(process.pid);
  const path = join(folder, FILE);
  if (self) writeSecret(path, JSON.stringify({ process: self, environment, addresses } satisfies Running));
  return { [Symbol.dispose]: () => rmSync(path, { force: true }) };
}

/** Writes a file that only its owner can read. The rename makes the write atomic. */
export function writeSecret(file: string, secret: string): void {
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, `${secret}\n`, { mode: 0o600 });
  renameSync(draft, file);
}

/** Returns the settings of a running `up`, live before sample before demo, or undefined. @param root the setting FLEETBOOK_HOME */
export function runningEnvironment(root: string): Readonly<Record<string, string>> | undefined {
  return findRunning(root)?.environment;
}

/** Returns a notice of a running `up`: where it runs, and how to stop it; undefined if none runs. */
export function runningNotice(root: string): string | undefined {
  const running = findRunning(root);
  if (running === undefined) return undefined;
  const { process, addresses } = running;
  const where = addresses
    ? `at ${addresses.api}, with the operators’ pages at ${addresses.operators}`
    : 'and is still starting';
  return `Fleetbook already runs in ${resolve(root)} (process ${process.pid}) ${where}. Stop it with Ctrl-C, or start a second one with other values of FLEETBOOK_HOME, PORT and OPS_PORT`;
}

function findRunning(root: string): Running | undefined {
  for (const mode of ['live', 'sample', 'demo']) {
    const running = readRunning(resolve(root, mode, FILE));
    // A killed process does not remove its file.
    if (running && isAlive(running.process)) return running;
  }
  return undefined;
}

function readRunning(path: string): Running | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Running;
  } catch {
    return undefined;
  }
}
