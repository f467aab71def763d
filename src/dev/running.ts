import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { identify, isAlive, type ProcessIdentity } from './process-identity.ts';

/** How a command reaches what a running `up` has started: its settings. They hold passwords: the file is 0600. */
interface Running {
  readonly process: ProcessIdentity;
  readonly environment: Readonly<Record<string, string>>;
  /** Absent while it starts. */
  readonly addresses?: Addresses | undefined;
}

/** URLs of the API and of the operators' pages. */
export interface Addresses {
  readonly api: string;
  readonly operators: string;
}

const FILE = 'running.json';

/** Writes the settings of this process to its home, for other commands. Disposing removes them. */
export function announceRunning(
  folder: string,
  environment: Readonly<Record<string, string>>,
  addresses?: Addresses,
): Disposable {
  const self = identify(process.pid);
  const path = join(folder, FILE);
  const draft = `${path}.new`;
  if (self) {
    writeFileSync(draft, JSON.stringify({ process: self, environment, addresses } satisfies Running), {
      mode: 0o600,
    });
    renameSync(draft, path);
  }
  return { [Symbol.dispose]: () => rmSync(path, { force: true }) };
}

/**
 * The settings of the `up` that runs in this home, live data before the sample; undefined when none does.
 * @param root the setting FLEETBOOK_HOME
 */
export function runningEnvironment(root: string): Readonly<Record<string, string>> | undefined {
  return findRunning(root)?.environment;
}

/** Says that an `up` runs in this home, where, and how to stop it; undefined when none does. */
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
  for (const mode of ['live', 'sample']) {
    const running = readRunning(resolve(root, mode, FILE));
    // A process that was killed leaves its file behind.
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
