import { ReplicaReads } from '../../../features/replica/reads.ts';
import { ReplicaTier } from '../../../features/replica/tier.ts';
import { documentId } from '../../document/keys.ts';
import type { DocumentsOptions } from '../documents-options.ts';
import { POSTGRES_DEADLINE_MS, PostgresReads } from '../postgres/postgres-reads.ts';
import { CacheTier } from './cache-tier.ts';
import type { DocumentMemory } from './memory.ts';
import { PostgresTier } from './postgres-tier.ts';
import { Tiers } from './tiers.ts';

/** Reads from Postgres, or from a replica and the primary behind it. */
export function openPostgresReads(options: DocumentsOptions): PostgresReads | ReplicaReads {
  return (
    options.replica ??
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

/** The list of tiers, the nearest first. */
export function openTiers(
  { subscription, logger, copy, onUnusable }: DocumentsOptions,
  memory: DocumentMemory,
  postgres: PostgresReads | ReplicaReads,
): Tiers {
  const cache = new CacheTier({
    subscription,
    onUnusable: (name) => {
      onUnusable?.(name.kind);
      logger.warn(
        { document: documentId(name) },
        'the cache held a value that cannot be used; it is replaced',
      );
    },
  });
  const writeBack = subscription.writeBack.bind(subscription);
  const isReplica = postgres instanceof ReplicaReads;
  const primary = new PostgresTier({ postgres: isReplica ? postgres.primary : postgres, writeBack });
  return new Tiers([
    memory,
    cache,
    ...(copy ? [copy.tier] : []),
    isReplica ? new ReplicaTier(primary, postgres) : primary,
  ]);
}
