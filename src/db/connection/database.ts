import { type ClientOptions, openClient, type Sql } from './client.ts';
import { drizzle, type PgDatabase, type PostgresJsQueryResultHKT } from './drizzle.ts';

/** Drizzle on the pool, on a single connection or in a transaction. */
export type Database = PgDatabase<PostgresJsQueryResultHKT>;

export type ClientDatabase = Database & { readonly $client: Sql };

/** Drizzle on a single connection: temporary tables stay from one statement to the next. */
export type ConnectionDatabase = ClientDatabase & { readonly isConnection: true };

/** A single connection, for temporary tables and transactions of many steps. Disposing ends it. */
export interface Connection extends AsyncDisposable {
  readonly db: ConnectionDatabase;
  readonly sql: Sql;
}

export function openConnection(url: string, options: ClientOptions): Connection {
  const client = openClient(url, options);
  const db = Object.assign(databaseOn(client), { isConnection: true as const });
  return { db, sql: client, [Symbol.asyncDispose]: () => client.end({ timeout: 0 }) };
}

export function databaseOn(client: Sql): ClientDatabase {
  return drizzle(client);
}
