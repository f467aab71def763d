import type { Logger } from 'pino';
import type { Sql } from '../../db/connection/client.ts';
import type { DocumentName } from '../document/keys.ts';
import type { MemoryBudget } from './budget.ts';
import type { CacheSubscription } from './cache-subscription.ts';
import type { DurableCopy } from './durable-copy.ts';
import type { PostgresReadsOptions } from './postgres/postgres-reads.ts';
import type { Replica } from './replica.ts';

/** Called for each publication, that of a position of the feed included, and when everything that was read is of another history. */
export interface PublicationListener {
  onPublished(id: string, version: number): void;
  onLineage(): void;
}

export interface DocumentsOptions {
  readonly sql: Sql;
  /** In the place of `sql`. */
  readonly replica?: Replica | undefined;
  readonly subscription: CacheSubscription;
  readonly logger: Logger;
  readonly now?: () => number;
  readonly memory: Pick<MemoryBudget, 'documents' | 'machineRegions' | 'unknownTokens'>;
  /** Reads that may fall back to Postgres at once. */
  readonly postgresReads: number;
  /** Milliseconds that such a read may take, waiting for its turn included; `POSTGRES_DEADLINE_MS` unless given. */
  readonly postgresDeadlineMs?: number;
  /** What an operator is told of a failure to reach or enter Postgres. */
  readonly postgresProblem?: PostgresReadsOptions['problemOf'];
  /** Called when Postgres takes statements and answers none, for a while: its connections are to be made anew. */
  readonly onHang?: (() => void) | undefined;
  /** Hears of each value of the cache that cannot be used, by the kind of document that was asked for. */
  readonly onUnusable?: ((kind: DocumentName['kind']) => void) | undefined;
  /** Milliseconds for which memory answers when neither cache nor Postgres does. */
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
  /** What is served is kept there, and given when no other tier answers. */
  readonly copy?: DurableCopy | undefined;
}
