import type { HeldSample } from '../../domain/held-sample.ts';
import type { ReasonGroup } from '../../domain/rejected-rows.ts';
import {
  CLUSTER_CHANGES,
  MACHINE_CHANGES,
  type Naming,
  type RateChange,
  RUN_CAUSES,
  type RunRequests,
} from '../../domain/run.ts';
import { bigint, index, pgTable, primaryKey, sql, text, uniqueIndex } from '../connection/drizzle.ts';
import { regions } from './catalogue.ts';
import { amount, instant, reference } from './shared-columns.ts';

/** A configured upstream. Each start of a run raises `fence`; only the run with the current fence may write. */
export const sources = pgTable('sources', (c) => ({
  id: c.text('id').primaryKey(),
  kind: c.text('kind', { enum: ['catalogue', 'clusters', 'rates', 'lifecycles'] }).notNull(),
  adapter: c.text('adapter').notNull(),
  fence: c.bigint('fence', { mode: 'number' }).notNull().default(0),
  /** Start of the last good run: the freshness of clusters, exchange rates and providers. Regions have their own. */
  verifiedAt: instant('verified_at'),
  registeredAt: instant('registered_at').notNull().defaultNow(),
  /** When an operator unpublished its data. The next good run sets it to null. */
  retiredAt: instant('retired_at'),
  /** No run starts for a disabled source. Its data stays published. */
  disabledAt: instant('disabled_at'),
  disabledBy: c.text('disabled_by'),
  disabledReason: c.text('disabled_reason'),
  /** Until then no run starts by itself: the source ended the process of its workers. A person's request ends the pause. */
  pausedUntil: instant('paused_until'),
  pausedReason: c.text('paused_reason'),
}));

export const ofSource = () =>
  text('source_id')
    .notNull()
    .references(() => sources.id);

/** Freshness of regions, `Fleetbook-As-Of`: the start of the last good run that read it. Without a row the API omits the region. */
export const regionFreshness = pgTable(
  'region_freshness',
  {
    sourceId: ofSource(),
    regionId: reference('region_id', () => regions.id),
    verifiedAt: instant('verified_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.sourceId, t.regionId] }),
    index('region_freshness_by_region').on(t.regionId),
  ],
);

/** Validators of the payloads of the stored rows. They count only for the same parse fingerprint, a hash of code and settings. */
export const sourceValidators = pgTable(
  'source_validators',
  (c) => ({
    sourceId: ofSource(),
    url: c.text('url').notNull(),
    etag: c.text('etag'),
    lastModified: c.text('last_modified'),
    parseFingerprint: c.text('reading').notNull(),
  }),
  (t) => [primaryKey({ columns: [t.sourceId, t.url] })],
);

export const syncRuns = pgTable(
  'sync_runs',
  (c) => ({
    id: c.bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    sourceId: ofSource(),
    fence: c.bigint('fence', { mode: 'number' }).notNull(),
    slot: instant('slot'),
    cause: c.text('cause', { enum: RUN_CAUSES }),
    /**
     * True if its worker never had another run at the same time: if the process dies, this run is the cause. Null outside of
     * workers, and after an operator enabled the source again.
     */
    alone: c.boolean('alone'),
    askedBy: c.text('asked_by'),
    startedAt: instant('started_at').notNull().defaultNow(),
    finishedAt: instant('finished_at'),
    seen: c.integer('seen'),
    added: c.integer('added'),
    changed: c.integer('changed'),
    retired: c.integer('retired'),
    rejected: c.integer('rejected'),
    withdrawn: c.integer('withdrawn'),
    outcome: c
      .text('outcome', {
        enum: ['running', 'changed', 'unchanged', 'held', 'failed', 'superseded', 'interrupted', 'cancelled'],
      })
      .notNull()
      .default('running'),
    error: c.text('error'),
    /** Reasons of unusable rows, the most frequent first. */
    reasons: c.jsonb('reasons').$type<readonly ReasonGroup[]>(),
    /** Null for a run without requests. */
    requests: c.jsonb('requests').$type<RunRequests>(),
    /** When its changes took effect; null for a run without changes, and once its changes are deleted. */
    changedAt: instant('changed_at'),
    namings: c.jsonb('namings').$type<readonly Naming[]>(),
    rates: c.jsonb('rates').$type<readonly RateChange[]>(),
    /** The batch that it stored or undid. No foreign key: batches are deleted before their runs. */
    decidedBatch: c.integer('decided_batch'),
    decision: c.text('decision', { enum: ['approve', 'undo'] }),
  }),
  (t) => [
    index('sync_runs_by_source').on(t.sourceId, t.id),
    index('sync_runs_that_changed').on(t.changedAt).where(sql`changed_at is not null`),
  ],
);

/** A batch that a guard stopped; a source has at most one pending. `undone`: an operator undid the approval. */
export const heldBatches = pgTable(
  'held_batches',
  (c) => ({
    id: c.integer('id').primaryKey().generatedAlwaysAsIdentity(),
    sourceId: ofSource(),
    runId: c
      .bigint('run_id', { mode: 'number' })
      .notNull()
      .references(() => syncRuns.id),
    broken: c.jsonb('broken').notNull(),
    /** One sentence for operators that states the kind of change. */
    pattern: c.text('pattern').notNull(),
    worst: c.jsonb('worst').$type<HeldSample>().notNull(),
    status: c
      .text('status', { enum: ['pending', 'approved', 'rejected', 'superseded', 'undone'] })
      .notNull()
      .default('pending'),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** When the first of successive batches that broke the same guards was held. */
    heldSince: instant('held_since').notNull().defaultNow(),
    /** When it was read; the freshness of its data once approved. */
    readAt: instant('read_at').notNull().defaultNow(),
    decidedAt: instant('decided_at'),
    decidedBy: c.text('decided_by'),
    reason: c.text('reason'),
    /** True if its items can undo the decision: a rejected batch's own items, or the state before an approval. */
    reversible: c.boolean('reversible').notNull().default(false),
    verifiedBefore: instant('verified_before'),
    undoneAt: instant('undone_at'),
    undoneBy: c.text('undone_by'),
    undoneReason: c.text('undone_reason'),
  }),
  (t) => [uniqueIndex('one_pending_batch_per_source').on(t.sourceId).where(sql`status = 'pending'`)],
);

/** Items of a held batch. After a decision, the items that undo it; later none. */
export const heldItems = pgTable(
  'held_items',
  (c) => ({
    batchId: c
      .integer('batch_id')
      .notNull()
      .references(() => heldBatches.id, { onDelete: 'cascade' }),
    position: c.integer('position').notNull(),
    item: c.jsonb('item').notNull(),
  }),
  (t) => [primaryKey({ columns: [t.batchId, t.position] })],
);

/** Unusable rows of the last good run of each source. */
export const quarantinedRows = pgTable(
  'quarantined_rows',
  (c) => ({
    sourceId: ofSource(),
    rowKey: c.text('row_key').notNull(),
    reason: c.text('reason').notNull(),
    code: c.text('code').notNull().default('invalid'),
    regionCode: c.text('region_code'),
    name: c.text('name'),
    organization: c.text('organization'),
    /** A rejected price that an operator can accept: `{amount, per, currency}`. */
    price: c.jsonb('price'),
    firstSeenAt: instant('first_seen_at').notNull().defaultNow(),
    /** When an operator approved a batch with this row and reason. Guards skip such a row. */
    approvedAt: instant('approved_at'),
  }),
  (t) => [primaryKey({ columns: [t.sourceId, t.rowKey] })],
);

/** Prices that exceed the guard's factor and that an operator accepted. */
export const acceptedPrices = pgTable(
  'accepted_prices',
  (c) => ({
    sourceId: ofSource(),
    regionCode: c.text('region_code').notNull(),
    name: c.text('name').notNull(),
    amount: amount('amount').notNull(),
    per: c.text('per', { enum: ['minute', 'hour', 'month'] }).notNull(),
    currency: c.text('currency').notNull(),
    acceptedAt: instant('accepted_at').notNull().defaultNow(),
    acceptedBy: c.text('accepted_by').notNull(),
    reason: c.text('reason'),
  }),
  (t) => [
    primaryKey({
      name: 'accepted_prices_pk',
      columns: [t.sourceId, t.regionCode, t.name, t.amount, t.per, t.currency],
    }),
  ],
);

/** Claimed slots. The row of a schedule's latest slot is the only state of its attempts, see sync/runs/slots.ts. */
export const scheduleSlots = pgTable(
  'schedule_slots',
  (c) => ({
    schedule: c.text('schedule').notNull(),
    slot: instant('slot').notNull(),
    claimedAt: instant('claimed_at').notNull().defaultNow(),
    /** When the current attempt is due; null for a finished slot. */
    dueAt: instant('due_at'),
    /** Number of the current attempt, from 0. */
    attempt: c.integer('attempt').notNull().default(0),
    /** When the current attempt reached the queue. */
    enqueuedAt: instant('enqueued_at'),
    /** When a worker began the current attempt. */
    begunAt: instant('begun_at'),
    /** Failed attempts in a row. */
    failures: c.integer('failures').notNull().default(0),
    /** Why the current attempt takes place outside the schedule; null for one of the schedule. */
    cause: c.text('cause', { enum: ['hand', 'follow'] }),
    askedBy: c.text('asked_by'),
  }),
  (t) => [
    primaryKey({ columns: [t.schedule, t.slot] }),
    index('schedule_slots_due').on(t.dueAt).where(sql`due_at is not null`),
  ],
);

// Changes of machines and clusters by runs, stored for CHANGES_KEPT. An added machine or cluster has no row here: its own row
// names the run (decision 0037). There are no foreign keys, which would check each row: runs and machines outlive their changes.

const changeColumns = {
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
    ...changeColumns,
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
    ...changeColumns,
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
