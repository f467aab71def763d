/** Where everything comes from, and what came of each reading. */

import { RUN_CAUSES } from '../../domain/run.ts';
import {
  bigint,
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  sql,
  text,
  uniqueIndex,
} from '../connection/drizzle.ts';
import { regions } from './catalogue.ts';
import { amount, instant } from './columns.ts';

/** A configured instance of an adapter. `fence` rises at every start of a run; only its holder may write. */
export const sources = pgTable('sources', {
  id: text('id').primaryKey(),
  kind: text('kind', { enum: ['catalogue', 'clusters', 'rates'] }).notNull(),
  adapter: text('adapter').notNull(),
  fence: bigint('fence', { mode: 'number' }).notNull().default(0),
  /**
   * When its last good run began to read: the freshness of clusters, exchange rates and the list of providers. That of
   * machines is kept for each region.
   */
  verifiedAt: instant('verified_at'),
  /** When it was first known: the age of a source that never succeeded counts from here. */
  registeredAt: instant('registered_at').notNull().defaultNow(),
  /** When an operator took its data out of publication; null again after the next good run. */
  retiredAt: instant('retired_at'),
  /** When an operator disabled it: nothing runs it until it is enabled, and its data stays published. */
  disabledAt: instant('disabled_at'),
  disabledBy: text('disabled_by'),
  disabledReason: text('disabled_reason'),
});

/**
 * The freshness of a catalogue's regions: when the last good run that could read the region began to read. A region that
 * no source has ever read has no row, and is not listed. Readers see the time as `Fleetbook-As-Of`.
 */
export const regionFreshness = pgTable(
  'region_freshness',
  {
    sourceId: text('source_id')
      .notNull()
      .references(() => sources.id),
    regionId: integer('region_id')
      .notNull()
      .references(() => regions.id),
    verifiedAt: instant('verified_at').notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.sourceId, t.regionId] }),
    index('region_freshness_by_region').on(t.regionId),
  ],
);

/**
 * The versions of its documents that a source's stored rows come from: written with those rows and with nothing else.
 * Under another parse fingerprint (a hash of what turns a payload into rows) they say nothing.
 */
export const sourceValidators = pgTable(
  'source_validators',
  {
    sourceId: text('source_id')
      .notNull()
      .references(() => sources.id),
    url: text('url').notNull(),
    etag: text('etag'),
    lastModified: text('last_modified'),
    parseFingerprint: text('reading').notNull(),
  },
  (t) => [primaryKey({ columns: [t.sourceId, t.url] })],
);

export const syncRuns = pgTable(
  'sync_runs',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    sourceId: text('source_id')
      .notNull()
      .references(() => sources.id),
    fence: bigint('fence', { mode: 'number' }).notNull(),
    /** The schedule's slot that asked for it; null for a run that none asked for. */
    slot: instant('slot'),
    /** Why it began; null for a run of a release that did not say. */
    cause: text('cause', { enum: RUN_CAUSES }),
    /**
     * Whether no other run was under way in its worker at any time: if the process ended then, this run is the cause. Null
     * where that was not recorded, and once an operator has enabled the source again.
     */
    alone: boolean('alone'),
    /** The person who asked for it, as the audit log names them. */
    askedBy: text('asked_by'),
    startedAt: instant('started_at').notNull().defaultNow(),
    finishedAt: instant('finished_at'),
    seen: integer('seen'),
    added: integer('added'),
    changed: integer('changed'),
    retired: integer('retired'),
    rejected: integer('rejected'),
    /** Machines that readers saw until then and that it excluded. */
    withdrawn: integer('withdrawn'),
    outcome: text('outcome', {
      enum: ['running', 'changed', 'unchanged', 'held', 'failed', 'superseded', 'interrupted', 'cancelled'],
    })
      .notNull()
      .default('running'),
    error: text('error'),
    /** Why rows of its batch could not be used, the most frequent reasons first: `[{code, reason, count, examples}]`. */
    reasons: jsonb('reasons'),
    /** Its HTTP requests, as `RunRequests` in domain/run.ts; null for a run that made none. */
    requests: jsonb('requests'),
    /** When all that it changed took effect; null for one that changed nothing, and when its changes are kept no more. */
    changedAt: instant('changed_at'),
    /** Names of regions and of the provider that it changed: `[{region, before, after}]`. */
    namings: jsonb('namings'),
    /** Exchange rates that it changed: `[{currency, before, after}]`. */
    rates: jsonb('rates'),
    /** The batch whose approval it carried out or took back. No foreign key: batches go before their runs. */
    decidedBatch: integer('decided_batch'),
    decision: text('decision', { enum: ['approve', 'undo'] }),
  },
  (t) => [
    index('sync_runs_by_source').on(t.sourceId, t.id),
    index('sync_runs_that_changed').on(t.changedAt).where(sql`changed_at is not null`),
  ],
);

/**
 * A batch that broke a guard, kept for an operator's decision. At most one is pending for each source. An undone one
 * was approved, and the approval was taken back; a rejection that is taken back makes the batch pending again.
 */
export const heldBatches = pgTable(
  'held_batches',
  {
    id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
    sourceId: text('source_id')
      .notNull()
      .references(() => sources.id),
    runId: bigint('run_id', { mode: 'number' })
      .notNull()
      .references(() => syncRuns.id),
    /** The guards that it broke: `[{guard, limit, found, detail}]`. */
    broken: jsonb('broken').notNull(),
    /** The rows that say most about it, see domain/held-sample.ts; null for a batch of an earlier release. */
    worst: jsonb('worst'),
    status: text('status', { enum: ['pending', 'approved', 'rejected', 'superseded', 'undone'] })
      .notNull()
      .default('pending'),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** When the first batch was held of those that broke the same guards and replaced each other. */
    heldSince: instant('held_since').notNull().defaultNow(),
    /** When it was read: the freshness of its data if it is approved. */
    readAt: instant('read_at').notNull().defaultNow(),
    decidedAt: instant('decided_at'),
    decidedBy: text('decided_by'),
    reason: text('reason'),
    /** Whether its items are what takes the decision back: of a rejected one itself, of an approved one the state before. */
    reversible: boolean('reversible').notNull().default(false),
    /** The source's `verified_at` before the approval. */
    verifiedBefore: instant('verified_before'),
    undoneAt: instant('undone_at'),
    undoneBy: text('undone_by'),
    undoneReason: text('undone_reason'),
  },
  (t) => [uniqueIndex('one_pending_batch_per_source').on(t.sourceId).where(sql`status = 'pending'`)],
);

/** What a held batch consists of: the adapter's items, one a row. After a decision, what undoes it; then nothing. */
export const heldItems = pgTable(
  'held_items',
  {
    batchId: integer('batch_id')
      .notNull()
      .references(() => heldBatches.id, { onDelete: 'cascade' }),
    position: integer('position').notNull(),
    item: jsonb('item').notNull(),
  },
  (t) => [primaryKey({ columns: [t.batchId, t.position] })],
);

/** Rows that the last good run of a source could not use: current state, not a log. */
export const quarantinedRows = pgTable(
  'quarantined_rows',
  {
    sourceId: text('source_id')
      .notNull()
      .references(() => sources.id),
    rowKey: text('row_key').notNull(),
    reason: text('reason').notNull(),
    /** The kind of reason, one of `REJECTION_CODES` in domain/rejected-rows.ts. */
    code: text('code').notNull().default('invalid'),
    /** What is known of whose row it is. */
    regionCode: text('region_code'),
    name: text('name'),
    organization: text('organization'),
    /** The price that was not taken, `{amount, per, currency}`, where an operator may accept it. */
    price: jsonb('price'),
    firstSeenAt: instant('first_seen_at').notNull().defaultNow(),
    /** When an operator approved a batch with this row and reason: the guards do not count the row again. */
    approvedAt: instant('approved_at'),
  },
  (t) => [primaryKey({ columns: [t.sourceId, t.rowKey] })],
);

/** Prices beyond the guard's factor that an operator accepted, one machine at a time. */
export const acceptedPrices = pgTable(
  'accepted_prices',
  {
    sourceId: text('source_id')
      .notNull()
      .references(() => sources.id),
    regionCode: text('region_code').notNull(),
    name: text('name').notNull(),
    amount: amount('amount').notNull(),
    per: text('per', { enum: ['minute', 'hour', 'month'] }).notNull(),
    currency: text('currency').notNull(),
    acceptedAt: instant('accepted_at').notNull().defaultNow(),
    acceptedBy: text('accepted_by').notNull(),
    reason: text('reason'),
  },
  (t) => [
    primaryKey({
      name: 'accepted_prices_pk',
      columns: [t.sourceId, t.regionCode, t.name, t.amount, t.per, t.currency],
    }),
  ],
);

/**
 * One row for each slot of a schedule that some worker claimed. A slot without `enqueued_at` is picked up again, and so
 * is one that was due a while ago and whose job the queue has lost.
 */
export const scheduleSlots = pgTable(
  'schedule_slots',
  {
    schedule: text('schedule').notNull(),
    slot: instant('slot').notNull(),
    claimedAt: instant('claimed_at').notNull().defaultNow(),
    enqueuedAt: instant('enqueued_at'),
    /** When its job, or the job's next attempt, is to run; null once the slot is done with. */
    dueAt: instant('due_at'),
  },
  (t) => [
    primaryKey({ columns: [t.schedule, t.slot] }),
    index('schedule_slots_not_enqueued').on(t.claimedAt).where(sql`enqueued_at is null`),
    index('schedule_slots_due').on(t.dueAt).where(sql`due_at is not null`),
  ],
);
