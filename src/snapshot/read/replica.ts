import type { CacheSubscription } from './cache-subscription.ts';
import type { Reads } from './postgres/reads.ts';
import type { DocumentTier } from './tiers/tier.ts';

/** A replica of Postgres and its primary, in the place of one server. */
export interface Replica {
  readonly reads: Reads;
  /** Opens the tier of Postgres. @param writeBack offers documents of the primary to the cache */
  tier(writeBack: CacheSubscription['writeBack']): DocumentTier;
}
