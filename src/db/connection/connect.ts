import { type ClientOptions, databaseOn, openConnection, Pool } from './client.ts';

export type { ClientDatabase, Connection, ConnectionDatabase, Database, Sql } from './client.ts';

/** `owner` migrates; `worker` writes for every organization; `reader` serves under row-level security. */
export type StoreRole = 'owner' | 'worker' | 'reader';

const DATABASE_ROLE: Record<StoreRole, string | undefined> = {
  owner: undefined,
  worker: 'fleetbook_worker',
  reader: 'fleetbook_reader',
};

export type Store = ReturnType<typeof openStore>;

export interface StoreOptions {
  readonly url: string;
  /** For `connection`, if `url` is a pooler. */
  readonly directUrl?: string | undefined;
  readonly role: StoreRole;
  readonly connections?: number;
  readonly statementTimeoutMs?: number;
  /** `idle_in_transaction_session_timeout` (ms): a frozen process must not hold its locks. */
  readonly silentInTransactionMs?: number;
  readonly applicationName?: string;
}

function clientOptions(options: StoreOptions): ClientOptions {
  const role = DATABASE_ROLE[options.role];
  const { statementTimeoutMs, silentInTransactionMs } = options;
  return {
    max: options.connections ?? 4,
    connect_timeout: 5,
    onnotice: () => {},
    connection: {
      application_name: options.applicationName ?? `fleetbook ${options.role}`,
      TimeZone: 'UTC',
      // See decision 13. `doctor` has no role, since some poolers reject it.
      ...(role === undefined ? {} : { role, jit: 'off' }),
      ...(statementTimeoutMs === undefined ? {} : { statement_timeout: statementTimeoutMs }),
      ...(silentInTransactionMs === undefined
        ? {}
        : { idle_in_transaction_session_timeout: silentInTransactionMs }),
    },
  };
}

/** Opens connections lazily: the first query connects. */
export function openStore(options: StoreOptions) {
  const client = clientOptions(options);
  const pool = new Pool(options.url, client);
  const connection = () => openConnection(options.directUrl ?? options.url, client);
  return {
    /** For the prepared reads: each takes one round trip. A statement of Drizzle with parameters takes two. */
    sql: pool.sql,
    db: databaseOn(pool.sql),
    /** Opens a connection for temporary tables. It connects with the first statement. */
    connection,
    renew: () => pool.renew(),
    onLost: (listener: () => void) => pool.onLost(listener),
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}
