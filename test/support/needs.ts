import type { TestOptions } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** Why the test does not run here. */
    readonly skipped?: string;
  }
}

/**
 * Options of a test, or of a whole `describe`, that not every machine can run: `npm test` says why it was skipped.
 * @param what it needs, after "needs"
 */
export function needs(isThere: boolean, what: string): TestOptions {
  return isThere ? {} : { skip: true, meta: { skipped: `needs ${what}` } };
}

/** Payloads of real upstreams are not part of the repository. */
export const RECORDED_PAYLOADS = 'the recorded payloads, a folder beside the repository';

/** See `asNobody`. */
export const ANOTHER_USER = 'root and the program setpriv, to become another user';

export const SETPRIV = 'the program setpriv';

export const DOCKER = 'a Docker engine';

export const PROMTOOL = 'the program promtool, of the package prometheus';

export const PGBOUNCER = 'the program pgbouncer, of the package pgbouncer';
