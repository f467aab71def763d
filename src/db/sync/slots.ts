import type { Database } from '../connection/connect.ts';
import { alias, and, desc, eq, gt, max, not, type SQLWrapper, sql } from '../connection/drizzle.ts';
import { insertInto, nameOf } from '../connection/statements.ts';
import { scheduleSlots as slots, sources, syncRuns } from '../schema.ts';

export interface Slot {
  readonly schedule: string;
  /** RFC 3339, to the minute. */
  readonly slot: string;
}

const later = alias(slots, 'later');
const claimed = alias(slots, 'claimed');
/** A later slot of the same schedule was claimed. */
const IS_COVERED = sql`exists (
  select from ${slots} ${later} where ${later.schedule} = ${slots.schedule} and ${later.slot} > ${slots.slot})`;
/** The schedule is that of a source which an operator has disabled. */
const isDisabled = (schedule: SQLWrapper) => sql`exists (
  select from ${sources} where ${sources.id} = ${schedule} and ${sources.disabledAt} is not null)`;
const is = ({ schedule, slot }: Slot) => and(eq(slots.schedule, schedule), eq(slots.slot, slot));

/**
 * Claims a slot for this worker. False when some worker has it already: any number of them give one run. A slot of a
 * disabled source stays free: once it is enabled, the latest one is claimed.
 */
export async function claimSlot(db: Database, { schedule, slot }: Slot): Promise<boolean> {
  const claimed = await db.execute(sql`
    ${insertInto(slots, { schedule, slot: sql`${slot}::timestamptz`, dueAt: sql`now()` })}
    where not ${isDisabled(sql`${schedule}`)} on conflict do nothing`);
  return claimed.count > 0;
}

/** What time it is for every worker alike. */
export async function databaseNow(db: Database): Promise<Date> {
  const [row] = await db.execute<{ ms: number }>(
    sql`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`,
  );
  if (row === undefined) throw new Error('unreachable: the statement returns its row');
  return new Date(row.ms);
}

/** Records that the slot's job is in the queue. */
export async function slotEnqueued(db: Database, slot: Slot): Promise<void> {
  await db.update(slots).set({ enqueuedAt: sql`now()` }).where(is(slot));
}

/** Gives a slot back as if nobody had claimed it: it was not run, since its source is disabled. */
export async function releaseSlot(db: Database, slot: Slot): Promise<void> {
  await db.delete(slots).where(is(slot));
}

/**
 * Sets when the slot's job is tried again. A slot that was read or cancelled is left alone: an attempt that fails late,
 * after another worker has taken its job, must not make it due again.
 * @param due undefined once the slot is done with: it was read, or is given up
 */
export async function setSlotDue(db: Database, slot: Slot, due: Date | undefined): Promise<void> {
  await db
    .update(slots)
    .set({ dueAt: due?.toISOString() ?? null })
    .where(due === undefined ? is(slot) : and(is(slot), not(isSettled(slot))));
}

/** A run since the slot was claimed has read its source well, stored or held, or was cancelled by an operator. */
const isSettled = (slot: Slot) => sql`exists (
  select from ${syncRuns} join ${slots} ${claimed}
    on ${claimed.schedule} = ${syncRuns.sourceId} and ${claimed.slot} = ${syncRuns.slot}
  where ${and(eq(claimed.schedule, slot.schedule), eq(claimed.slot, slot.slot))}
    and ${syncRuns.startedAt} >= ${claimed.claimedAt} and ${syncRuns.outcome} in ('changed', 'unchanged', 'held', 'cancelled'))`;

/** Whether a run of the slot has read its source well: the worker may have died before it could say so to the queue. */
export async function isSlotRead(db: Database, slot: Slot): Promise<boolean> {
  const [row] = await db.execute<{ read: boolean }>(sql`select ${isSettled(slot)} as read`);
  return row?.read ?? false;
}

/** Whether a later slot of its schedule was claimed, which takes its place. */
export async function isSlotCovered(db: Database, { schedule, slot }: Slot): Promise<boolean> {
  const covering = await db
    .select({ slot: slots.slot })
    .from(slots)
    .where(and(eq(slots.schedule, schedule), gt(slots.slot, slot)))
    .limit(1);
  return covering.length > 0;
}

/** Whether the latest slot of a schedule is still to be run, or to be tried again. */
export async function isLatestSlotOpen(db: Database, schedule: string): Promise<boolean> {
  const [latest] = await db
    .select({ dueAt: slots.dueAt })
    .from(slots)
    .where(eq(slots.schedule, schedule))
    .orderBy(desc(slots.slot))
    .limit(1);
  return latest?.dueAt != null;
}

/** Until when the jobs of a schedule are to wait: an upstream asked for more time than was left before the next slot. */
export async function slotsWaitUntil(db: Database, schedule: string): Promise<Date | undefined> {
  const [row] = await db
    .select({ until: max(slots.dueAt) })
    .from(slots)
    .where(and(eq(slots.schedule, schedule), gt(slots.dueAt, sql`now()`)));
  return row?.until == null ? undefined : new Date(row.until);
}

/** A job that is due for so long is looked for: where the queue still has it, nothing happens. */
const OVERDUE = '1 minute';

/**
 * Slots that were claimed and never reached the queue, or that are overdue, so that the queue may have lost their jobs;
 * unless a later one of the same schedule was claimed: that one covers them, and they are given up. Those of a disabled
 * source wait until it is enabled.
 * @param olderThanMs leaves those alone that another worker is about to enqueue
 */
export async function slotsToEnqueue(db: Database, olderThanMs: number): Promise<Slot[]> {
  return db.execute<{ schedule: string; slot: string }>(sql`
    with open as (
      select ${slots.schedule}, ${slots.slot}, ${IS_COVERED} as covered from ${slots}
      where (${slots.enqueuedAt} is null and ${slots.claimedAt} < now() - ${olderThanMs} * interval '1 millisecond')
        or ${slots.dueAt} < now() - ${OVERDUE}::interval
    ), given_up as (
      update ${slots} set ${nameOf(slots.enqueuedAt)} = coalesce(${slots.enqueuedAt}, now()), ${nameOf(slots.dueAt)} = null
      from open where open.covered and ${slots.schedule} = open.schedule and ${slots.slot} = open.slot
    )
    select schedule, to_char(slot at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as slot
    from open where not covered and not ${isDisabled(sql`open.schedule`)} order by schedule collate "C"`);
}

/** Forgets slots that are so old that no worker will ask for them again. */
export async function pruneSlots(db: Database): Promise<void> {
  await db.delete(slots).where(sql`${slots.claimedAt} < now() - interval '7 days' and ${IS_COVERED}`);
}
