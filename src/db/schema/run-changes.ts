/**
 * Changes of machines and clusters by runs, stored for CHANGES_KEPT. An added machine or cluster has no row here: its own row
 * names the run (decision 0037). There are no foreign keys, which would check each row: runs and machines outlive their changes.
 */

import { CLUSTER_CHANGES, MACHINE_CHANGES } from '../../domain/run.ts';
import { bigint, index, pgTable, sql, text } from '../connection/drizzle.ts';
import { amount, instant } from './shared-columns.ts';

const common = {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  /** Null if an operator retired the source or deleted the organization. */
  runId: bigint('run_id', { mode: 'number' }),
  sourceId: text('source_id').notNull(),
  /** The same for all changes of one transaction; `changed_at` of the run. */
  changedAt: instant('changed_at').notNull(),
};

/** One changed machine: its state before and, unless it is retired, after. */
export const machineChanges = pgTable(
  'machine_changes',
  (c) => ({
    ...common,
    machineId: c.integer('machine_id').notNull(),
    change: c.text('change', { enum: MACHINE_CHANGES }).notNull(),
    oldCpu: c.integer('old_cpu').notNull(),
    oldRam: c.numeric('old_ram').notNull(),
    oldRamUnit: c.text('old_ram_unit').notNull(),
    oldAmount: amount('old_amount'),
    oldPer: c.text('old_per'),
    oldCurrency: c.text('old_currency'),
    oldExcludedReason: c.text('old_excluded_reason'),
    cpu: c.integer('cpu'),
    ram: c.numeric('ram'),
    ramUnit: c.text('ram_unit'),
    sourceAmount: amount('source_amount'),
    sourcePer: c.text('source_per'),
    sourceCurrency: c.text('source_currency'),
    excludedReason: c.text('excluded_reason'),
    oldFacts: c.jsonb('old_facts'),
    facts: c.jsonb('facts'),
  }),
  (t) => [
    index('machine_changes_by_time').on(t.changedAt),
    index('machine_changes_by_machine').on(t.machineId, t.id),
  ],
);

/** A changed cluster. `before` and `after` have the differing fields as text; all for a retired or returned one. `user` is an id. */
export const clusterChanges = pgTable(
  'cluster_changes',
  (c) => ({
    ...common,
    organizationId: c.integer('organization_id').notNull(),
    clusterId: c.integer('cluster_id').notNull(),
    change: c.text('change', { enum: CLUSTER_CHANGES }).notNull(),
    before: c.jsonb('before').notNull(),
    after: c.jsonb('after').notNull().default(sql`'{}'`),
  }),
  (t) => [
    index('cluster_changes_by_time').on(t.changedAt),
    index('cluster_changes_by_organization').on(t.organizationId, t.clusterId, t.id),
  ],
);
