import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { messageOf } from '../domain/errors.ts';
import { isWellFormedToken, type TokenKind } from '../domain/token.ts';
import { takeLockOr } from './lock.ts';
import { runningNotice, writeSecret } from './running.ts';

/** Each mode has its own folder and database, so that invented and live data never mix. */
export type Mode = 'sample' | 'live' | 'demo';

type StoredToken = Extract<TokenKind, 'api' | 'operator'>;
const FILES: Readonly<Record<StoredToken, string>> = { api: 'token', operator: 'operator-token' };

/** The data folder of `fleetbook up` for one mode. Disposing releases its lock. */
export interface Home extends Disposable {
  /** Absolute path; only its owner can read it. */
  readonly folder: string;
  readToken(kind: StoredToken): string | undefined;
  writeToken(kind: StoredToken, token: string): void;
}

/** Creates and locks `<root>/<mode>`. @throws Error with the remedy if another `up` uses it, or it is not writable */
export function openHome(root: string, mode: Mode): Home {
  const folder = resolve(root, mode);
  makeFolder(resolve(root), folder);
  const lock = takeLockOr(
    join(folder, 'up.lock'),
    (holder) =>
      runningNotice(root) ??
      `another \`fleetbook up\` (process ${holder}) uses ${folder}: stop it, or set FLEETBOOK_HOME to another folder`,
  );
  const fileOf = (kind: StoredToken) => join(folder, FILES[kind]);
  return {
    folder,
    readToken(kind) {
      const file = fileOf(kind);
      if (!existsSync(file)) return undefined;
      const token = readFileSync(file, 'utf8').trim();
      if (!isWellFormedToken(token, kind))
        throw new Error(
          `${file} contains no valid token: remove the file, and the next start creates a new one`,
        );
      return token;
    },
    writeToken: (kind, token) => writeSecret(fileOf(kind), token),
    [Symbol.dispose]: () => lock[Symbol.dispose](),
  };
}

function makeFolder(root: string, folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
    const ignore = join(root, '.gitignore');
    // The folder contains secrets and may be inside a Git repository.
    if (!existsSync(ignore)) writeFileSync(ignore, '*\n');
  } catch (error) {
    throw new Error(
      `cannot keep data in ${folder} (${messageOf(error)}): set FLEETBOOK_HOME to a folder that can be written`,
      { cause: error },
    );
  }
}
