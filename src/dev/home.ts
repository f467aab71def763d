import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isWellFormedToken } from '../domain/token.ts';
import { takeLockOr } from './lock.ts';
import { runningNotice } from './running.ts';

/** Sample and live data never mix: each mode has a folder, and with it a database, of its own. */
export type Mode = 'sample' | 'live';

/** Characters, as the setting OPS_TOKEN asks. */
const OPS_TOKEN_LENGTH = 32;

/** The folder in which `fleetbook up` keeps a mode's data. Disposing lets the next `up` have it. */
export interface Home extends Disposable {
  /** Absolute, readable by its owner alone. */
  readonly folder: string;
  /**
   * The token that the last start printed, or undefined.
   * @throws Error when the file holds something else.
   */
  readToken(): string | undefined;
  /** Keeps a token in plain text, readable by its owner alone: it is for the user of this very machine. */
  writeToken(token: string): void;
  /** The password of the operators' pages, which the first start makes, kept in the same way. */
  opsToken(): string;
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
  const tokenFile = join(folder, 'token');
  const opsTokenFile = join(folder, 'ops-token');
  return {
    folder,
    readToken() {
      if (!existsSync(tokenFile)) return undefined;
      const token = readFileSync(tokenFile, 'utf8').trim();
      if (!isWellFormedToken(token))
        throw new Error(`${tokenFile} holds no token: remove it, and a new one is made`);
      return token;
    },
    writeToken: (token) => writeSecret(tokenFile, token),
    opsToken() {
      const kept = existsSync(opsTokenFile) ? readFileSync(opsTokenFile, 'utf8').trim() : '';
      // An earlier release made shorter ones.
      if (kept.length >= OPS_TOKEN_LENGTH) return kept;
      const token = randomBytes(24).toString('base64url');
      writeSecret(opsTokenFile, token);
      return token;
    },
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
