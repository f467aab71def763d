import * as schema from '../schema.ts';
import { type ClientOptions, openClient, type Sql } from './client.ts';
import { drizzle, type PgDatabase, type PostgresJsQueryResultHKT } from './drizzle.ts';

/** Drizzle, on the pool, in a session or in a transaction. */
export type Database = PgDatabase<PostgresJsQueryResultHKT, typeof schema>;

/** Drizzle with the client behind it. */
export type ClientDatabase = Database & { readonly $client: Sql };

/** Drizzle in a session: temporary tables that one statement makes are there for the next one. */
export type SessionDatabase = ClientDatabase & { readonly inSession: true };

/** A connection of its own, for temporary tables and a transaction of many steps. Disposing ends it. */
export interface Session extends AsyncDisposable {
  readonly db: SessionDatabase;
  /** The client behind it, for what is not a statement about tables of the schema, e.g. an advisory lock. */
  readonly sql: Sql;
}

/** It connects when it is first used. */
export function openSession(url: string, options: ClientOptions): Session {
  const client = openClient(url, options);
  const db = Object.assign(databaseOn(client), { inSession: true as const });
  return { db, sql: client, [Symbol.asyncDispose]: () => client.end({ timeout: 0 }) };
}

export function databaseOn(client: Sql): ClientDatabase {
  return drizzle(client, { schema });
}
