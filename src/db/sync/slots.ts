import type { Sql } from '../connection/client.ts';
import type { Database } from '../connection/connect.ts';
import { alias, and, desc, eq, gt, max, not, type SQLWrapper, sql } from '../connection/drizzle.ts';
import { instant } from '../connection/instant-text.ts';
import { insertInto, nameOf, only, rfc3339 } from '../connection/statements.ts';
import { scheduleSlots as slots, sources, syncRuns } from '../schema.ts';

export interface Slot {
  readonly schedule: string;
  readonly slot: string;
}

const later = alias(slots, 'later');
const claimed = alias(slots, 'claimed');
const IS_COVERED = sql`exists (
  select from ${slots} ${later} where ${later.schedule} = ${slots.schedule} and ${later.slot} > ${slots.slot})`;
const isDisabled = (schedule: SQLWrapper) => sql`exists (
  select from ${sources} where ${sources.id} = ${schedule} and ${sources.disabledAt} is not null)`;
const is = ({ schedule, slot }: Slot) => and(eq(slots.schedule, schedule), eq(slots.slot, slot));

/** Claims a slot. Returns false if another worker has it, or if the source is disabled. */
export async function claimSlot(db: Database, { schedule, slot }: Slot): Promise<boolean> {
  const claimed = await db.execute(sql`
    ${insertInto(slots, { schedule, slot: sql`${slot}::timestamptz`, dueAt: sql`now()` })}
    where not ${isDisabled(sql`${schedule}`)} on conflict do nothing`);
  return claimed.count > 0;
}

/** The schedule that every worker claims each minute. */
export const EVERY_MINUTE = 'publish-sweep';

/** Returns when a worker last claimed the slot of `EVERY_MINUTE` (RFC 3339); undefined if none ever ran. */
export async function lastWorkerSign(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ at: string | null }[]>`
    select ${instant(sql, 'max(claimed_at)')} as at from schedule_slots where schedule = ${EVERY_MINUTE}`;
  return row?.at ?? undefined;
}

export async function databaseNow(db: Database): Promise<Date> {
  const now = sql`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`;
  return new Date(only(await db.execute<{ ms: number }>(now)).ms);
}

export async function slotEnqueued(db: Database, slot: Slot): Promise<void> {
  await db.update(slots).set({ enqueuedAt: sql`now()` }).where(is(slot));
}

/** Releases the claim of a slot whose source is disabled. */
export async function releaseSlot(db: Database, slot: Slot): Promise<void> {
  await db.delete(slots).where(is(slot));
}

/**
 * Sets when the slot's next attempt is due, unless a run of the slot succeeded or was cancelled: an attempt that fails late must not
 * repeat such a slot.
 * @param due undefined for a finished slot
 */
export async function setSlotDue(db: Database, slot: Slot, due: Date | undefined): Promise<void> {
  await db
    .update(slots)
    .set({ dueAt: due?.toISOString() ?? null })
    .where(due === undefined ? is(slot) : and(is(slot), not(isSettled(slot))));
}

const isSettled = (slot: Slot) => sql`exists (
  select from ${syncRuns} join ${slots} ${claimed}
    on ${claimed.schedule} = ${syncRuns.sourceId} and ${claimed.slot} = ${syncRuns.slot}
  where ${and(eq(claimed.schedule, slot.schedule), eq(claimed.slot, slot.slot))}
    and ${syncRuns.startedAt} >= ${claimed.claimedAt} and ${syncRuns.outcome} in ('changed', 'unchanged', 'held', 'cancelled'))`;

/** Returns true if a run of the slot is settled. The worker may have died before it could tell the queue. */
export async function isSlotRead(db: Database, slot: Slot): Promise<boolean> {
  const [row] = await db.execute<{ read: boolean }>(sql`select ${isSettled(slot)} as read`);
  return row?.read ?? false;
}

export async function isSlotCovered(db: Database, { schedule, slot }: Slot): Promise<boolean> {
  return (await db.$count(slots, and(eq(slots.schedule, schedule), gt(slots.slot, slot)))) > 0;
}

export async function isLatestSlotOpen(db: Database, schedule: string): Promise<boolean> {
  const [latest] = await db
    .select({ dueAt: slots.dueAt })
    .from(slots)
    .where(eq(slots.schedule, schedule))
    .orderBy(desc(slots.slot))
    .limit(1);
  return latest?.dueAt != null;
}

/** Returns until when jobs of a schedule have to wait, because an upstream requested a pause beyond the next slot. */
export async function slotsWaitUntil(db: Database, schedule: string): Promise<Date | undefined> {
  const [row] = await db
    .select({ until: max(slots.dueAt) })
    .from(slots)
    .where(and(eq(slots.schedule, schedule), gt(slots.dueAt, sql`now()`)));
  return row?.until == null ? undefined : new Date(row.until);
}

/** After this time a due job is enqueued again. If the queue still has it, nothing happens. */
const OVERDUE = '1 minute';

/**
 * Returns claimed slots that never reached the queue, and overdue slots, since the queue may have lost their jobs. It skips slots of
 * disabled sources, and finishes those with a later claimed slot.
 * @param olderThanMs skips newer claims, which another worker is about to enqueue
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
    select schedule, ${rfc3339(sql`slot`)} as slot
    from open where not covered and not ${isDisabled(sql`open.schedule`)} order by schedule collate "C"`);
}

export async function pruneSlots(db: Database): Promise<void> {
  await db.delete(slots).where(sql`${slots.claimedAt} < now() - interval '7 days' and ${IS_COVERED}`);
}
