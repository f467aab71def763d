import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { identify, isAlive, type ProcessIdentity } from './process-identity.ts';

/** How a command reaches what a running `up` has started: its settings. They hold passwords: the file is 0600. */
interface Running {
  readonly process: ProcessIdentity;
  readonly environment: Readonly<Record<string, string>>;
}

const FILE = 'running.json';

/** Leaves the settings of this process in its home for the commands beside it. Disposing takes them away. */
export function announceRunning(folder: string, environment: Readonly<Record<string, string>>): Disposable {
  const self = identify(process.pid);
  const path = join(folder, FILE);
  const draft = `${path}.new`;
  if (self) {
    writeFileSync(draft, JSON.stringify({ process: self, environment } satisfies Running), { mode: 0o600 });
    renameSync(draft, path);
  }
  return { [Symbol.dispose]: () => rmSync(path, { force: true }) };
}

/**
 * The settings of the `up` that runs in this home, live data before the sample; undefined when none does.
 * @param root the setting FLEETBOOK_HOME
 */
export function runningEnvironment(root: string): Readonly<Record<string, string>> | undefined {
  for (const mode of ['live', 'sample']) {
    const running = readRunning(resolve(root, mode, FILE));
    // One that was killed leaves its file behind.
    if (running && isAlive(running.process)) return running.environment;
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
