import { LiveRuns } from '../sync/live-runs.ts';
import { type ClientOptions, Pool, type Sql } from './client.ts';
import { type ClientDatabase, databaseOn, openSession, type Session } from './database.ts';

export type { Sql } from './client.ts';
export type { ClientDatabase, Database, Session, SessionDatabase } from './database.ts';

/** `owner` migrates; `worker` writes for every organization; `reader` serves, and row-level security holds it. */
export type StoreRole = 'owner' | 'worker' | 'reader';

const DATABASE_ROLE: Record<StoreRole, string | undefined> = {
  owner: undefined,
  worker: 'fleetbook_worker',
  reader: 'fleetbook_reader',
};

/** Connections that all act in one role. `await using` closes them. */
export interface Store extends AsyncDisposable {
  /** For what readers serve with: postgres.js names and prepares its statements, so each takes one round trip. Drizzle's take two. */
  readonly sql: Sql;
  readonly db: ClientDatabase;
  /** The runs of this process. */
  readonly liveRuns: LiveRuns;
  /** Opens a session; it connects when it is first used. */
  session(): Session;
  /** Leaves connections that nothing comes back on, e.g. after a failover that closed none, for new ones. */
  renew(): void;
  /** Adds a listener that hears when connections were lost and are made anew: the server may be another one by then. */
  onLost(listener: () => void): void;
}

export interface StoreOptions {
  readonly url: string;
  /** Where sessions are opened, if there is a pooler at `url` that has none. */
  readonly directUrl?: string | undefined;
  readonly role: StoreRole;
  /** Connections of the pool; they open when first used. */
  readonly connections?: number;
  /** Milliseconds after which Postgres itself gives a statement up. */
  readonly statementTimeoutMs?: number;
  /**
   * Milliseconds of silence amid a transaction after which Postgres itself ends the connection: one whose holder is
   * frozen would keep its rows from everybody else.
   */
  readonly silentInTransactionMs?: number;
  /** Shown in pg_stat_activity. */
  readonly applicationName?: string;
}

/** Milliseconds for which what writes waits until one of several servers takes writes: a standby is being promoted. */
const PATIENCE_MS = 10_000;

function clientOptions(options: StoreOptions): ClientOptions {
  const role = DATABASE_ROLE[options.role];
  const { statementTimeoutMs, silentInTransactionMs } = options;
  return {
    max: options.connections ?? 4,
    connect_timeout: 5,
    // A reader does not wait: it has other tiers.
    patienceMs: options.role === 'reader' ? 0 : PATIENCE_MS,
    onnotice: () => {},
    connection: {
      application_name: options.applicationName ?? `fleetbook ${options.role}`,
      TimeZone: 'UTC',
      // A statement takes milliseconds and compiling it a second. `doctor` alone has no role: it must get through any pooler.
      ...(role === undefined ? {} : { role, jit: 'off' }),
      ...(statementTimeoutMs === undefined ? {} : { statement_timeout: statementTimeoutMs }),
      ...(silentInTransactionMs === undefined
        ? {}
        : { idle_in_transaction_session_timeout: silentInTransactionMs }),
    },
  };
}

/** Connects lazily: nothing is opened before the first query. */
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
