import { createHash } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { PlainFailure } from '../lib/plain-failure.ts';
import { identify, isAlive, type ProcessIdentity } from './process-identity.ts';

/** Somebody who lives holds the lock. */
export class LockedError extends PlainFailure {
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

/** As `takeLock`, with an error that says what to do about its holder. */
export function takeLockOr(path: string, message: (holder: number) => string): Lock {
  try {
    return takeLock(path);
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
    throw new Error(message(error.holder), { cause: error });
  }
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
  // One that a process of the same number left may be the very file that is linked into place.
  rmSync(draft, { force: true });
  writeFileSync(draft, mine, { mode: 0o600 });
  try {
    const takenOver = place(draft, path);
    clearClaims(path);
    return {
      takenOver,
      [Symbol.dispose]() {
        if (readIfThere(path) === mine) rmSync(path, { force: true });
      },
    };
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * A dead holder's file stays until its successor's is in its place, so that nobody finds none in between. Who that is
 * says a claim, which one process alone can make. Claims are cleared only once the file is the successor's: a claim
 * that was made after that, on what had been read before, is void, since the file is another one then.
 * @returns whether it was a dead holder's
 */
function place(draft: string, path: string): boolean {
  for (;;) {
    if (linked(draft, path)) return false;
    const found = readIfThere(path);
    const claim = found === undefined ? undefined : claimed(draft, path, found);
    if (claim === undefined) continue;
    if (readIfThere(path) === found) {
      renameSync(draft, path);
      return true;
    }
    rmSync(claim, { force: true });
  }
}

const CLAIM = '.after.';

/**
 * Claims a dead holder's place, or that of the last one who died after claiming it.
 * @returns the claim; undefined when it is time to look anew
 * @throws LockedError when somebody alive holds the lock or has claimed it
 */
function claimed(draft: string, path: string, found: string): string | undefined {
  for (let last: string | undefined = found; last !== undefined; ) {
    const holder = parseHolder(last);
    if (holder && isAlive(holder)) throw new LockedError(path, holder.pid);
    const claim = `${path}${CLAIM}${createHash('sha256').update(last).digest('hex')}`;
    if (linked(draft, claim)) return claim;
    last = readIfThere(claim);
  }
  return undefined;
}

/** The new holder's business: what is claimed of those before it is void now. */
function clearClaims(path: string): void {
  const folder = dirname(path);
  for (const name of readdirSync(folder)) {
    if (name.startsWith(basename(path) + CLAIM)) rmSync(join(folder, name), { force: true });
  }
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
