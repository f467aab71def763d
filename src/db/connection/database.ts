import { type ClientOptions, inOneTransaction, openClient, type Sql } from './client.ts';
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

/**
 * Runs steps in a transaction, those of Drizzle and those of the client. A step on another connection of the pool may wait for ever:
 * transactions may hold all of them, and wait for the same.
 */
export const transactionOn = <T>(
  { $client }: ClientDatabase,
  steps: (tx: ClientDatabase) => Promise<T>,
): Promise<T> => inOneTransaction($client, '', (sql) => steps(databaseOn(sql)));

export function databaseOn(client: Sql): ClientDatabase {
  return drizzle(client);
}
