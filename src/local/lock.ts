import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { identify, isAlive, type ProcessIdentity } from './process-identity.ts';

/** Somebody who lives holds the lock. */
export class LockedError extends Error {
  override readonly name = 'LockedError';
  /** The process that holds it. */
  readonly holder: number;

  constructor(path: string, holder: number) {
    super(`${path} is held by process ${holder}`);
    this.holder = holder;
  }
}

/** A lock file with its holder's pid and start time. Disposing gives it back. */
export interface Lock extends Disposable {
  /** True when its last holder died without giving it back, so that what it started may still be there. */
  readonly takenOver: boolean;
}

/**
 * Takes the lock at once or not at all. The file appears whole (it is linked into place), and one that a dead process
 * left behind is taken over.
 * @throws LockedError when a live process, be it this one, holds it.
 */
export function takeLock(path: string): Lock {
  const self = identify(process.pid);
  if (!self) throw new Error(`cannot read this process's own start time, which ${path} needs`);
  const mine = JSON.stringify(self);
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, mine, { mode: 0o600 });
  try {
    while (!linked(draft, path)) {
      const found = readIfThere(path);
      if (found === undefined) continue;
      const holder = parseHolder(found);
      if (holder && isAlive(holder)) throw new LockedError(path, holder.pid);
      setAside(path, found);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return {
    takenOver: clearMarks(path),
    [Symbol.dispose]() {
      if (readIfThere(path) === mine) rmSync(path, { force: true });
    },
  };
}

/**
 * Removes a dead holder's file, and puts it back when somebody else has taken it over in between. A mark is there before
 * the file is gone: whoever takes the lock then, and it may be another one, learns from it that there was a dead holder.
 */
function setAside(path: string, stale: string): void {
  const aside = `${path}.stale.${process.pid}`;
  const mark = `${path}${MARK}${process.pid}`;
  writeFileSync(mark, '');
  try {
    renameSync(path, aside);
  } catch {
    rmSync(mark, { force: true });
    return;
  }
  if (readIfThere(aside) !== stale) {
    linked(aside, path);
    rmSync(mark, { force: true });
  }
  rmSync(aside, { force: true });
}

const MARK = '.left.';

/** The new holder's business. @returns whether a dead holder's file was set aside since the last one took the lock */
function clearMarks(path: string): boolean {
  const folder = dirname(path);
  const marks = readdirSync(folder).filter((name) => name.startsWith(basename(path) + MARK));
  for (const mark of marks) rmSync(join(folder, mark), { force: true });
  return marks.length > 0;
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function parseHolder(text: string): ProcessIdentity | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('pid' in value) || !('started' in value))
      return undefined;
    const { pid, started } = value;
    return typeof pid === 'number' && typeof started === 'string' ? { pid, started } : undefined;
  } catch {
    return undefined;
  }
}
