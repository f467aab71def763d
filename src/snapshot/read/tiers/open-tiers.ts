import { documentId } from '../../document/keys.ts';
import type { DocumentsOptions } from '../documents-options.ts';
import { POSTGRES_DEADLINE_MS, PostgresReads } from '../postgres/postgres-reads.ts';
import type { Reads } from '../postgres/reads.ts';
import { CacheTier } from './cache-tier.ts';
import type { DocumentMemory } from './memory.ts';
import { PostgresTier } from './postgres-tier.ts';
import { Tiers } from './tiers.ts';

export function openPostgresReads(options: DocumentsOptions): Reads {
  return (
    options.replica?.reads ??
    new PostgresReads({
      sql: options.sql,
      logger: options.logger,
      now: options.now ?? Date.now,
      atOnce: options.postgresReads,
      deadlineMs: options.postgresDeadlineMs ?? POSTGRES_DEADLINE_MS,
      onHang: options.onHang,
      problemOf: options.postgresProblem,
    })
  );
}

/** Returns the tiers: memory, cache, the copy on disk, Postgres or its replica. */
export function openTiers(
  { subscription, logger, replica, copy, onUnusable }: DocumentsOptions,
  memory: DocumentMemory,
  postgres: Reads,
): Tiers {
  const cache = new CacheTier({
    subscription,
    onUnusable: (name) => {
      onUnusable?.(name.kind);
      logger.warn({ document: documentId(name) }, 'a value in the cache cannot be used; it is replaced');
    },
  });
  const writeBack = subscription.writeBack.bind(subscription);
  return new Tiers([
    memory,
    cache,
    ...(copy ? [copy.tier] : []),
    replica ? replica.tier(writeBack) : new PostgresTier({ postgres, writeBack }),
  ]);
}
