import type { Logger } from 'pino';
import type { Sql } from '../../db/connection/client.ts';
import type { DocumentName } from '../document/keys.ts';
import type { MemoryBudget } from './budget.ts';
import type { CacheSubscription } from './cache-subscription.ts';
import type { DurableCopy } from './durable-copy.ts';
import type { PostgresReadsOptions } from './postgres/postgres-reads.ts';
import type { Replica } from './replica.ts';

/** Receives each publication, also of a feed position, and each change of lineage. */
export interface PublicationListener {
  onPublished(id: string, version: number): void;
  onLineage(): void;
}

export interface DocumentsOptions {
  readonly sql: Sql;
  /** Replaces `sql`. */
  readonly replica?: Replica | undefined;
  readonly subscription: CacheSubscription;
  readonly logger: Logger;
  readonly now?: () => number;
  readonly memory: Pick<MemoryBudget, 'documents' | 'machineRegions' | 'unknownTokens'>;
  /** Reads from Postgres at once. */
  readonly postgresReads: number;
  /** Milliseconds for such a read, the wait for its turn included; `POSTGRES_DEADLINE_MS` by default. */
  readonly postgresDeadlineMs?: number;
  /** Returns the operator's message for a failed connection or login. */
  readonly postgresProblem?: PostgresReadsOptions['problemOf'];
  /** Called when Postgres takes statements and answers none: the connections are to be replaced. */
  readonly onHang?: (() => void) | undefined;
  /** Receives the kind of each document whose value in the cache cannot be used. */
  readonly onUnusable?: ((kind: DocumentName['kind']) => void) | undefined;
  /** Milliseconds for which memory answers while neither cache nor Postgres does. */
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
  /** Stores what is served, and answers when no other tier does. */
  readonly copy?: DurableCopy | undefined;
}
