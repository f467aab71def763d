import type { Sql } from '../../../db/connection/client.ts';

/** True if the result of a server that may be behind can be used. Otherwise the primary is read. */
export type Check<T> = (result: T) => boolean;

/** Reads from Postgres, by one server or by several. They reject with `Unavailable`. */
export interface Reads {
  /** With a check, a server that may be behind is read first. Without one, the primary is. */
  run<T>(read: (sql: Sql) => Promise<T>, check?: Check<T>): Promise<T>;
  /** For what only the primary knows. Another server is read if the primary does not answer. */
  readonly primaryFirst: PrimaryReads;
}

export interface PrimaryReads {
  run<T>(read: (sql: Sql) => Promise<T>): Promise<T>;
  /** As `PostgresReads.look`. */
  look<T>(read: (sql: Sql) => Promise<T>): Promise<T>;
}
