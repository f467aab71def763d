import type { Sql } from '../../../db/connection/client.ts';

/** Returns true for a usable result of a server that may be behind. Otherwise the primary is read. */
export type Check<T> = (result: T) => boolean;

/** Reads from one server of Postgres, or several. They reject with `Unavailable`. */
export interface Reads {
  /** With a check, a server that may be behind is read first. Without one, the primary is. */
  run<T>(read: (sql: Sql) => Promise<T>, check?: Check<T>): Promise<T>;
  /** Reads of the primary, or of another server if the primary does not answer. */
  readonly primaryFirst: PrimaryReads;
}

export interface PrimaryReads {
  run<T>(read: (sql: Sql) => Promise<T>): Promise<T>;
  /** As `PostgresReads.look`. */
  look<T>(read: (sql: Sql) => Promise<T>): Promise<T>;
}
