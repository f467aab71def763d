import { Pool } from './client.ts';
import { type ClientDatabase, databaseOn, openSession, type Session } from './database.ts';
import { choiceOf, clientOptions, type SqlStore, type StoreOptions } from './open.ts';
import { LiveRuns } from './queries/live-runs.ts';

export type { Sql } from './client.ts';
export type { ClientDatabase, Database, Session, SessionDatabase } from './database.ts';
export type { StoreOptions, StoreRole } from './open.ts';

/** What writes has Drizzle as well. Readers do without: to load it takes longer than all the rest of them. */
export interface Store extends SqlStore {
  readonly db: ClientDatabase;
  /** The runs of this process. */
  readonly liveRuns: LiveRuns;
  /** Opens a session; it connects when it is first used. */
  session(): Session;
}

/** Connects lazily: nothing is opened before the first query. */
export function openStore(options: StoreOptions): Store {
  const client = clientOptions(options);
  const choice = choiceOf(options);
  const pool = new Pool(options.url, client, choice);
  const session = () => openSession(options.directUrl ?? options.url, client, choice);
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
