/**
 * What runs have changed, kept for CHANGES_KEPT. A machine or cluster that a run has added needs no row: its own says
 * which run that was, and the first of its later changes what it was then: see
 * docs/decisions/0037-changes-of-runs.md.
 *
 * Nothing here refers to another table by a foreign key, which would look it up once a row: runs and machines stay for
 * as long as their changes.
 */

import { CLUSTER_CHANGES, MACHINE_CHANGES } from '../../domain/changes.ts';
import { bigint, index, integer, jsonb, numeric, pgTable, sql, text } from '../connection/drizzle.ts';
import { amount, instant } from './columns.ts';

/** What every change has. */
const common = {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  /** Null where no run did it, but an operator who retired the source or deleted the organization. */
  runId: bigint('run_id', { mode: 'number' }),
  sourceId: text('source_id').notNull(),
  /** The same for all that one transaction has changed; of a run its `changed_at`. */
  changedAt: instant('changed_at').notNull(),
};

/** One machine that a run has changed: all of it before and, unless it is retired, after. */
export const machineChanges = pgTable(
  'machine_changes',
  {
    ...common,
    machineId: integer('machine_id').notNull(),
    change: text('change', { enum: MACHINE_CHANGES }).notNull(),
    oldCpu: integer('old_cpu').notNull(),
    oldRam: numeric('old_ram').notNull(),
    oldRamUnit: text('old_ram_unit').notNull(),
    oldAmount: amount('old_amount'),
    oldPer: text('old_per'),
    oldCurrency: text('old_currency'),
    oldExcludedReason: text('old_excluded_reason'),
    cpu: integer('cpu'),
    ram: numeric('ram'),
    ramUnit: text('ram_unit'),
    sourceAmount: amount('source_amount'),
    sourcePer: text('source_per'),
    sourceCurrency: text('source_currency'),
    excludedReason: text('excluded_reason'),
    /** `Partial<MachineFacts>`; null where nothing was known. */
    oldFacts: jsonb('old_facts'),
    facts: jsonb('facts'),
  },
  (t) => [
    index('machine_changes_by_time').on(t.changedAt),
    index('machine_changes_by_machine').on(t.machineId, t.id),
  ],
);

/**
 * One cluster that a run has changed. `before` and `after` are fields as text: of a changed one those that differ, of a
 * retired or returned one all. The creator is the id of a user, whose name an operator may take away later.
 */
export const clusterChanges = pgTable(
  'cluster_changes',
  {
    ...common,
    organizationId: integer('organization_id').notNull(),
    clusterId: integer('cluster_id').notNull(),
    change: text('change', { enum: CLUSTER_CHANGES }).notNull(),
    before: jsonb('before').notNull(),
    after: jsonb('after').notNull().default(sql`'{}'`),
  },
  (t) => [
    index('cluster_changes_by_time').on(t.changedAt),
    index('cluster_changes_by_organization').on(t.organizationId, t.clusterId, t.id),
  ],
);
