import { LiveRuns } from '../sync/live-runs.ts';
import { type ClientOptions, Pool, type Sql } from './client.ts';
import { type ClientDatabase, databaseOn, openSession, type Session } from './database.ts';

export type { Sql } from './client.ts';
export type { ClientDatabase, Database, Session, SessionDatabase } from './database.ts';

/** `owner` migrates; `worker` writes for every organization; `reader` serves under row-level security. */
export type StoreRole = 'owner' | 'worker' | 'reader';

const DATABASE_ROLE: Record<StoreRole, string | undefined> = {
  owner: undefined,
  worker: 'fleetbook_worker',
  reader: 'fleetbook_reader',
};

/** Connections in one role. `await using` closes them. */
export interface Store extends AsyncDisposable {
  /** Prepares its statements, so each takes one round trip. Statements of Drizzle take two. */
  readonly sql: Sql;
  readonly db: ClientDatabase;
  /** The runs of this process. */
  readonly liveRuns: LiveRuns;
  /** Opens a connection for temporary tables. It connects with the first statement. */
  session(): Session;
  /** Replaces all connections, e.g. after a failover that closed none. */
  renew(): void;
  /** Adds a listener. It runs after a loss: new connections may lead to another server. */
  onLost(listener: () => void): void;
}

export interface StoreOptions {
  readonly url: string;
  /** For `session`, if `url` is a pooler. */
  readonly directUrl?: string | undefined;
  readonly role: StoreRole;
  /** Largest number of connections in the pool; 4 by default. */
  readonly connections?: number;
  /** `statement_timeout` (ms). */
  readonly statementTimeoutMs?: number;
  /** `idle_in_transaction_session_timeout` (ms): a frozen process must not hold its locks. */
  readonly silentInTransactionMs?: number;
  /** Shown in pg_stat_activity. */
  readonly applicationName?: string;
}

/** How long workers wait for a host that accepts writes, e.g. during a promotion (ms). */
const PATIENCE_MS = 10_000;

function clientOptions(options: StoreOptions): ClientOptions {
  const role = DATABASE_ROLE[options.role];
  const { statementTimeoutMs, silentInTransactionMs } = options;
  return {
    max: options.connections ?? 4,
    connect_timeout: 5,
    // Readers have other tiers.
    patienceMs: options.role === 'reader' ? 0 : PATIENCE_MS,
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
export function openStore(options: StoreOptions): Store {
  const client = clientOptions(options);
  const pool = new Pool(options.url, client);
  const session = () => openSession(options.directUrl ?? options.url, client);
  const liveRuns = new LiveRuns(session);
  return {
    sql: pool.sql,
    db: databaseOn(pool.sql),
    liveRuns,
    session,
    renew: () => pool.renew(),
    onLost: (listener) => pool.onLost(listener),
    async [Symbol.asyncDispose]() {
      await Promise.all([liveRuns[Symbol.asyncDispose](), pool[Symbol.asyncDispose]()]);
    },
  };
}
