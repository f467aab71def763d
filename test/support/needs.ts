import type { TestOptions } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** The reason why the test is skipped here. */
    readonly skipped?: string;
  }
}

/**
 * Options of a test or `describe` that needs something of the machine: `npm test` reports why it was skipped.
 * @param what the missing thing, after "needs"
 */
export function needs(isThere: boolean, what: string): TestOptions {
  return isThere ? {} : { skip: true, meta: { skipped: `needs ${what}` } };
}

/** See `asOrdinaryUser`. */
export const ANOTHER_USER = 'root and the program setpriv, to become another user';

export const SETPRIV = 'the program setpriv';

export const DOCKER = 'a Docker engine, and the images of PostgreSQL and Redis or a way to their registry';

export const PROMTOOL = 'the program promtool, of the package prometheus';

export const PGBOUNCER = 'the program pgbouncer, of the package pgbouncer';

export const HELM = 'the program helm';

export const KUBECONFORM = 'the programs helm and kubeconform';
