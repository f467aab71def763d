import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isWellFormedToken, type TokenKind } from '../domain/token.ts';
import { takeLockOr } from './lock.ts';
import { runningNotice } from './running.ts';

/** Sample and live data never mix: each mode has a folder, and with it a database, of its own. */
export type Mode = 'sample' | 'live';

/** A token of the API, and a token to sign in to the operators' pages with. */
type KeptToken = Extract<TokenKind, 'api' | 'operator'>;
const FILES: Readonly<Record<KeptToken, string>> = { api: 'token', operator: 'operator-token' };

/** The folder in which `fleetbook up` keeps a mode's data. Disposing lets the next `up` have it. */
export interface Home extends Disposable {
  /** Absolute, readable by its owner alone. */
  readonly folder: string;
  /**
   * The token that the last start printed, or undefined.
   * @throws Error if the file holds something else.
   */
  readToken(kind: KeptToken): string | undefined;
  /** Keeps a token in plain text, readable by its owner alone: it is for the user of this very machine. */
  writeToken(kind: KeptToken, token: string): void;
}

/**
 * Makes and locks `<root>/<mode>`.
 * @param root the setting FLEETBOOK_HOME
 * @throws Error that names the remedy when another `up` has it, or it cannot be written.
 */
export function openHome(root: string, mode: Mode): Home {
  const folder = resolve(root, mode);
  makeFolder(resolve(root), folder);
  const lock = takeLockOr(
    join(folder, 'up.lock'),
    (holder) =>
      runningNotice(root) ??
      `another \`fleetbook up\` (process ${holder}) uses ${folder}: stop it, or set FLEETBOOK_HOME to another folder`,
  );
  const fileOf = (kind: KeptToken) => join(folder, FILES[kind]);
  return {
    folder,
    readToken(kind) {
      const file = fileOf(kind);
      if (!existsSync(file)) return undefined;
      const token = readFileSync(file, 'utf8').trim();
      if (!isWellFormedToken(token, kind))
        throw new Error(`${file} holds no token: remove it, and a new one is made`);
      return token;
    },
    writeToken: (kind, token) => writeSecret(fileOf(kind), token),
    [Symbol.dispose]: () => lock[Symbol.dispose](),
  };
}

/** Readable by its owner alone; whole, or not there. */
function writeSecret(file: string, secret: string): void {
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  writeFileSync(draft, `${secret}\n`, { mode: 0o600 });
  renameSync(draft, file);
}

function makeFolder(root: string, folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
    const ignore = join(root, '.gitignore');
    // It holds secrets, and lies in whatever project `up` was started in.
    if (!existsSync(ignore)) writeFileSync(ignore, '*\n');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(
      `cannot keep data in ${folder} (${why}): set FLEETBOOK_HOME to a folder that can be written`,
      {
        cause: error,
      },
    );
  }
}
