import { createHash } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { PlainFailure } from '../domain/errors.ts';
import { identify, isAlive, type ProcessIdentity } from './process-identity.ts';

export class LockedError extends PlainFailure {
  override readonly name = 'LockedError';
  readonly holder: number;

  constructor(path: string, holder: number) {
    super(`process ${holder} has the lock ${path}`);
    this.holder = holder;
  }
}

/** A lock file with its holder's pid and start time. Disposing releases it. */
export interface Lock extends Disposable {
  /** True if the last holder died without a release. Its servers may still run. */
  readonly takenOver: boolean;
}

/** Takes the lock, with the caller's error message for a live holder. */
export function takeLockOr(path: string, message: (holder: number) => string): Lock {
  try {
    return takeLock(path);
  } catch (error) {
    if (!(error instanceof LockedError)) throw error;
    throw new Error(message(error.holder), { cause: error });
  }
}

/** Takes the lock, also of a dead process. @throws LockedError if a live process has it, even this one */
export function takeLock(path: string): Lock {
  const self = identify(process.pid);
  if (!self) throw new Error(`cannot read the start time of this process for the lock ${path}`);
  const mine = JSON.stringify(self);
  const draft = `${path}.${process.pid}`;
  // An old draft of a process with the same pid may be linked to the current lock.
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
 * Puts the draft in place of the lock. The file of a dead holder stays until the successor's file replaces it, so that there
 * is always a file. Only one process can create the claim to succeed. Claims are removed after the replacement: a later claim
 * that is based on the old file is void, because the file has changed.
 * @returns true if the lock was taken from a dead holder
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

/** Claims the lock of a dead holder or claimant; undefined if the files have changed. @throws LockedError */
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

/** Returns the text of a file; undefined if it cannot be read. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function parseHolder(text: string): ProcessIdentity | undefined {
  try {
    const { pid, started }: Partial<ProcessIdentity> = JSON.parse(text);
    return typeof pid === 'number' && typeof started === 'string' ? { pid, started } : undefined;
  } catch {
    return undefined;
  }
}
