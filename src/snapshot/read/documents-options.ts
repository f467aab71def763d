import type { Logger } from 'pino';
import type { DocumentName } from '../document/keys.ts';
import type { MemoryBudget } from './budget.ts';
import type { CacheCommands } from './cache-commands.ts';
import type { CacheSubscription } from './cache-subscription.ts';
import type { Reads } from './postgres/postgres-reads.ts';
import type { DocumentTier } from './tiers/tier.ts';

/** Receives each publication, also of a feed position, and each change of lineage. */
export interface PublicationListener {
  onPublished(id: string, version: number): void;
  onLineage(): void;
}

/** One server of Postgres, or a replica and its primary. */
export interface PostgresSource {
  readonly reads: Reads;
  /** Opens the tier; a `PostgresTier` by default. @param writeBack offers documents of the primary to the cache */
  tier?(writeBack: CacheCommands['writeBack']): DocumentTier;
}

export interface DocumentsOptions {
  readonly postgres: PostgresSource;
  readonly subscription: CacheSubscription;
  readonly logger: Logger;
  readonly now?: () => number;
  readonly memory: Pick<MemoryBudget, 'documents' | 'machineRegions' | 'unknownTokens'>;
  readonly onUnusable?: ((kind: DocumentName['kind']) => void) | undefined;
  /** Milliseconds for which memory answers while neither cache nor Postgres does. */
  readonly staleLimitMs: number;
  readonly tokenStaleLimitMs: number;
}
