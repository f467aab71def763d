import type { Sql } from '../connect.ts';

export interface Slot {
  readonly schedule: string;
  /** RFC 3339, to the minute. */
  readonly slot: string;
}

/** Claims a slot for this worker. False when some worker has it already: any number of them give one run. */
export async function claimSlot(sql: Sql, { schedule, slot }: Slot): Promise<boolean> {
  const claimed = await sql`
    insert into schedule_slots (schedule, slot, due_at) values (${schedule}, ${slot}::timestamptz, now())
    on conflict do nothing`;
  return claimed.count > 0;
}

/** Records that the slot's job is in the queue. */
export async function slotEnqueued(sql: Sql, { schedule, slot }: Slot): Promise<void> {
  await sql`
    update schedule_slots set enqueued_at = now() where schedule = ${schedule} and slot = ${slot}::timestamptz`;
}

/**
 * When the slot's job is tried again.
 * @param due undefined once the slot is done with: it was read, or is given up
 */
export async function setSlotDue(sql: Sql, { schedule, slot }: Slot, due: Date | undefined): Promise<void> {
  await sql`
    update schedule_slots set due_at = ${due?.toISOString() ?? null}::timestamptz
    where schedule = ${schedule} and slot = ${slot}::timestamptz`;
}

/** Whether a later slot of its schedule was claimed, which takes its place. */
export async function isSlotCovered(sql: Sql, { schedule, slot }: Slot): Promise<boolean> {
  const [row] = await sql<{ covered: boolean }[]>`
    select exists (
      select from schedule_slots where schedule = ${schedule} and slot > ${slot}::timestamptz) as covered`;
  return row?.covered ?? false;
}

/** Whether the latest slot of a schedule is still to be run, or to be tried again. */
export async function isLatestSlotOpen(sql: Sql, schedule: string): Promise<boolean> {
  const [row] = await sql<{ open: boolean }[]>`
    select due_at is not null as open from schedule_slots
    where schedule = ${schedule} order by slot desc limit 1`;
  return row?.open ?? false;
}

/** Until when the jobs of a schedule are to wait: an upstream asked for more time than was left before the next slot. */
export async function slotsWaitUntil(sql: Sql, schedule: string): Promise<Date | undefined> {
  const [row] = await sql<{ until: Date | null }[]>`
    select max(due_at) as until from schedule_slots where schedule = ${schedule} and due_at > now()`;
  return row?.until ?? undefined;
}

/** A job that is due for so long is looked for: where the queue still has it, nothing happens. */
const OVERDUE = '1 minute';

/**
 * Slots that were claimed and never reached the queue, or that are overdue, so that the queue may have lost their jobs;
 * unless a later one of the same schedule was claimed: that one covers them, and they are given up.
 * @param olderThanMs leaves those alone that another worker is about to enqueue
 */
export async function slotsToEnqueue(sql: Sql, olderThanMs: number): Promise<Slot[]> {
  return sql<Slot[]>`
    with open as (
      select schedule, slot, exists (
        select from schedule_slots later where later.schedule = s.schedule and later.slot > s.slot) as covered
      from schedule_slots s
      where (enqueued_at is null and claimed_at < now() - ${olderThanMs} * interval '1 millisecond')
        or due_at < now() - ${OVERDUE}::interval
    ), given_up as (
      update schedule_slots s set enqueued_at = coalesce(enqueued_at, now()), due_at = null from open o
      where o.covered and s.schedule = o.schedule and s.slot = o.slot
    )
    select schedule, to_char(slot at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as slot
    from open where not covered order by schedule collate "C"`;
}

/** Forgets slots that are so old that no worker will ask for them again. */
export async function pruneSlots(sql: Sql): Promise<void> {
  await sql`
    delete from schedule_slots s where claimed_at < now() - interval '7 days'
      and exists (select from schedule_slots n where n.schedule = s.schedule and n.slot > s.slot)`;
}
