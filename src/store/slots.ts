import type { Sql } from './connect.ts';

export interface Slot {
  readonly schedule: string;
  /** RFC 3339, to the minute. */
  readonly slot: string;
}

/** Claims a slot for this worker. False when some worker has it already: any number of them give one run. */
export async function claimSlot(sql: Sql, { schedule, slot }: Slot): Promise<boolean> {
  const claimed = await sql`
    insert into schedule_slots (schedule, slot) values (${schedule}, ${slot}::timestamptz) on conflict do nothing`;
  return claimed.count > 0;
}

/** Records that the slot's job is in the queue. */
export async function slotEnqueued(sql: Sql, { schedule, slot }: Slot): Promise<void> {
  await sql`
    update schedule_slots set enqueued_at = now() where schedule = ${schedule} and slot = ${slot}::timestamptz`;
}

/**
 * Slots that were claimed and never reached the queue, unless a later one of the same schedule was claimed: that one
 * covers them, and they are given up.
 * @param olderThanMs leaves those alone that another worker is about to enqueue
 */
export async function slotsToEnqueue(sql: Sql, olderThanMs: number): Promise<Slot[]> {
  return sql<Slot[]>`
    with open as (
      select schedule, slot, exists (
        select from schedule_slots later where later.schedule = s.schedule and later.slot > s.slot) as covered
      from schedule_slots s
      where enqueued_at is null and claimed_at < now() - ${olderThanMs} * interval '1 millisecond'
    ), given_up as (
      update schedule_slots s set enqueued_at = now() from open o
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
