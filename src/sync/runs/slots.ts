/**
 * Slots of schedules and their attempts. The row of a schedule's latest slot is the only state of its runs: whether one is due,
 * when, and why. A queue in Redis only brings a due attempt to one worker, so a lost queue loses nothing.
 */
import type { Database } from '../../db/connection/connect.ts';
import {
  alias,
  and,
  desc,
  eq,
  gte,
  inArray,
  type SQL,
  type SQLWrapper,
  sql,
} from '../../db/connection/drizzle.ts';
import { insertInto, nameOf, only, type RowOf, rfc3339 } from '../../db/connection/statements.ts';
import { IS_LIVE } from '../../db/runs/status.ts';
import { scheduleSlots as slots, sources, syncRuns } from '../../db/schema.ts';

export interface Slot {
  readonly schedule: string;
  readonly slot: string;
}

/** One run of a slot. A slot has another attempt after a failure, and after a request. */
export interface Attempt extends Slot {
  /** Counts from 0. A job of an earlier attempt does nothing. */
  readonly attempt: number;
}

/** Why a run takes place outside its schedule. */
export interface Request {
  readonly cause: 'hand' | 'follow';
  /** The person of a `hand`. */
  readonly askedBy?: string | undefined;
}

export interface OpenAttempt extends Attempt {
  /** When a worker began it; null if none did. A worker that begins it again takes it from the one before. */
  readonly begunAt: string | null;
  /** Failed attempts of the slot in a row. */
  readonly failures: number;
  /** The request; `cause` is null for an attempt of the schedule. */
  readonly cause: 'hand' | 'follow' | null;
  readonly askedBy: string | null;
}

const later = alias(slots, 'later');
const before = alias(slots, 'before');
const r = alias(syncRuns, 'r');
const isCovered = (table: typeof slots = slots) => sql`exists (
  select from ${slots} ${later} where ${later.schedule} = ${table.schedule} and ${later.slot} > ${table.slot})`;
const isDisabled = (schedule: SQLWrapper) => sql`exists (
  select from ${sources} where ${sources.id} = ${schedule} and ${sources.disabledAt} is not null)`;
const isPaused = (schedule: SQLWrapper) => sql`exists (
  select from ${sources} where ${sources.id} = ${schedule} and ${sources.pausedUntil} > now())`;
/**
 * An attempt waits for the current run, which it would end: a source whose runs outlast its interval would never finish one. The
 * schedule does not wait for a run that began earlier than this, since it may hang.
 */
const LONGEST_WAIT = '1 hour';
const mustWait = (schedule: SQLWrapper, isRequested: SQLWrapper) => sql`exists (
  select from ${syncRuns} ${r} where ${r.sourceId} = ${schedule} and ${r.outcome} = 'running' and ${sql.raw(IS_LIVE)}
    and (${isRequested} or ${r.startedAt} > now() - ${LONGEST_WAIT}::interval))`;
const is = ({ schedule, slot }: Slot) => and(eq(slots.schedule, schedule), eq(slots.slot, slot));
const isAttempt = (attempt: Attempt) => and(is(attempt), eq(slots.attempt, attempt.attempt));

/**
 * Claims a slot. Its first attempt is due now, or when the pause ends that an upstream requested beyond the slot.
 * @returns true if the caller has to enqueue the attempt: no other worker has the slot, it is due, and the source is enabled and has
 * no current run
 */
export async function claimSlot(db: Database, { schedule, slot }: Slot): Promise<boolean> {
  const dueAt = sql`greatest(now(), (select max(${before.dueAt}) from ${slots} ${before}
    where ${before.schedule} = ${schedule} and ${before.slot} < ${slot}::timestamptz))`;
  const [claimed] = await db.execute<{ due: boolean }>(sql`
    ${insertInto(slots, { schedule, slot: sql`${slot}::timestamptz`, dueAt })}
    where not ${isDisabled(sql`${schedule}`)} on conflict do nothing
    returning ${slots.dueAt} <= now() and not ${mustWait(sql`${schedule}`, sql`false`)} as due`);
  return claimed?.due ?? false;
}

/** The schedule that every worker claims each minute. */
export const EVERY_MINUTE = 'publish-sweep';

/** Returns when a worker last claimed the slot of `EVERY_MINUTE` (RFC 3339); undefined if none ever ran. */
export async function lastWorkerSign(db: Database): Promise<string | undefined> {
  const [row] = await db
    .select({ at: rfc3339(sql`max(${slots.claimedAt})`) })
    .from(slots)
    .where(eq(slots.schedule, EVERY_MINUTE));
  return row?.at ?? undefined;
}

export async function databaseNow(db: Database): Promise<Date> {
  const now = sql`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`;
  return new Date(only(await db.execute<{ ms: number }>(now)).ms);
}

export async function attemptEnqueued(db: Database, attempt: Attempt): Promise<void> {
  await db.update(slots).set({ enqueuedAt: sql`now()` }).where(isAttempt(attempt));
}

/** After this time a due attempt is enqueued again. If the queue still has its job, nothing happens. */
const OVERDUE = '1 minute';

/**
 * Returns due attempts that are not in the queue, and overdue ones, since the queue may have lost their jobs. It skips disabled
 * and paused sources, and finishes slots with a later claimed one. An attempt waits for the current run of its source.
 * @param graceMs skips the first attempts of newer claims, which another worker is about to enqueue
 */
export async function attemptsToEnqueue(db: Database, graceMs: number): Promise<Attempt[]> {
  return db.execute<RowOf<Attempt>>(sql`
    with open as (
      select ${slots.schedule}, ${slots.slot}, ${slots.attempt}, ${slots.cause}, ${isCovered()} as covered from ${slots}
      where ${slots.dueAt} <= now() and (${slots.enqueuedAt} < now() - ${OVERDUE}::interval
        or (${slots.enqueuedAt} is null and (${slots.attempt} > 0 or ${slots.cause} is not null
          or ${slots.claimedAt} < now() - ${graceMs} * interval '1 millisecond')))
    ), given_up as (
      update ${slots} set ${nameOf(slots.enqueuedAt)} = coalesce(${slots.enqueuedAt}, now()), ${nameOf(slots.dueAt)} = null
      from open where open.covered and ${slots.schedule} = open.schedule and ${slots.slot} = open.slot
    )
    select schedule, ${rfc3339(sql`slot`)} as slot, attempt
    from open where not covered and not ${isDisabled(sql`open.schedule`)} and not ${isPaused(sql`open.schedule`)}
      and not ${mustWait(sql`open.schedule`, sql`open.cause is not null`)}
    order by schedule collate "C"`);
}

const OPEN = {
  schedule: slots.schedule,
  slot: sql<string>`${rfc3339(slots.slot)}`,
  attempt: slots.attempt,
  begunAt: slots.begunAt,
  failures: slots.failures,
  cause: slots.cause,
  askedBy: slots.askedBy,
};

/** Returns a due attempt; undefined if it has ended, or if a later attempt or slot replaces it. */
export async function openAttempt(db: Database, attempt: Attempt): Promise<OpenAttempt | undefined> {
  const [open] = await db
    .select(OPEN)
    .from(slots)
    .where(and(isAttempt(attempt), sql`${slots.dueAt} <= now()`, sql`not ${isCovered()}`));
  return open;
}

/** Begins an open attempt. A worker that began it before can no longer end it. Returns undefined if it is not open any more. */
export async function beginAttempt(db: Database, attempt: Attempt): Promise<OpenAttempt | undefined> {
  const [begun] = await db
    .update(slots)
    .set({ begunAt: sql`clock_timestamp()` })
    .where(and(isAttempt(attempt), sql`${slots.dueAt} <= now()`))
    .returning(OPEN);
  return begun;
}

const CAUSES_OF_ATTEMPTS = ['slot', 'first', 'retry', 'hand', 'follow'] as const;
const SETTLED = ['changed', 'unchanged', 'held', 'cancelled'] as const;

/**
 * Returns how a run ended that read the source, or that an operator cancelled, since a worker began the attempt; undefined
 * without one. That worker may have died before it ended the attempt.
 */
export async function settledSince(
  db: Database,
  { schedule, begunAt }: OpenAttempt,
): Promise<(typeof SETTLED)[number] | undefined> {
  if (begunAt === null) return undefined;
  const [settled] = await db
    .select({ outcome: syncRuns.outcome })
    .from(syncRuns)
    .where(
      and(
        eq(syncRuns.sourceId, schedule),
        gte(syncRuns.startedAt, begunAt),
        inArray(syncRuns.outcome, SETTLED),
        inArray(syncRuns.cause, CAUSES_OF_ATTEMPTS),
      ),
    )
    .orderBy(desc(syncRuns.id))
    .limit(1);
  return settled?.outcome as (typeof SETTLED)[number] | undefined;
}

/** The worker's attempt, unless another worker began it again, or a request replaced it. */
const isOwn = (begun: OpenAttempt): SQL | undefined =>
  and(isAttempt(begun), begun.begunAt === null ? undefined : eq(slots.begunAt, begun.begunAt));

/** Ends an attempt: the slot is finished. A request since its begin stays due. */
export async function endAttempt(db: Database, begun: OpenAttempt): Promise<void> {
  await db
    .update(slots)
    .set({ dueAt: null, begunAt: null, failures: 0, cause: null, askedBy: null })
    .where(isOwn(begun));
}

/** Ends an attempt. The slot's next attempt is due at a later time. A request since its begin stays due now. */
export async function retryAttempt(
  db: Database,
  begun: OpenAttempt,
  { due, failures }: { readonly due: Date; readonly failures: number },
): Promise<void> {
  await db
    .update(slots)
    .set({ dueAt: due.toISOString(), ...NEXT, failures, cause: null, askedBy: null })
    .where(isOwn(begun));
}

const NEXT = { attempt: sql`${slots.attempt} + 1`, enqueuedAt: null, begunAt: null };

/** Ends an attempt that could not begin. It stays due, and is enqueued when its source may run. */
export async function postponeAttempt(db: Database, attempt: OpenAttempt): Promise<void> {
  await db.update(slots).set(NEXT).where(isOwn(attempt));
}

/**
 * Makes an attempt of the schedule's latest slot due now. If one waits for a worker already, it serves the request. A person's
 * request ends the pause before a retry; other requests wait for the retry.
 * @param slot claimed if the schedule has no slot yet
 */
export async function requestAttempt(
  db: Database,
  { schedule, slot }: Slot,
  {
    cause,
    askedBy = null,
  }: { readonly cause: Request['cause']; readonly askedBy?: string | null | undefined },
): Promise<void> {
  const isHand = sql`${cause} = 'hand'`;
  // A due attempt that no worker has begun will read the source after this request.
  const waits = sql`(${slots.dueAt} <= now() and ${slots.begunAt} is null)`;
  const unless = (kept: SQLWrapper, otherwise: SQL) =>
    sql`case when ${waits} then ${kept} else ${otherwise} end`;
  const requested = await db
    .update(slots)
    .set({
      enqueuedAt: unless(slots.enqueuedAt, sql`null`),
      attempt: unless(slots.attempt, sql`${slots.attempt} + 1`),
      dueAt: sql`now()`,
      begunAt: null,
      cause,
      askedBy,
    })
    .where(
      and(
        eq(slots.schedule, schedule),
        sql`not ${isCovered()}`,
        sql`(${isHand} or ${slots.dueAt} is null or ${slots.begunAt} is not null)`,
      ),
    );
  if (requested.count > 0) return;
  await db.execute(sql`
    ${insertInto(slots, { schedule, slot: sql`${slot}::timestamptz`, dueAt: sql`now()`, cause, askedBy })}
    where not exists (select from ${slots} where ${slots.schedule} = ${schedule}) on conflict do nothing`);
}

export async function pruneSlots(db: Database): Promise<void> {
  await db.delete(slots).where(sql`${slots.claimedAt} < now() - interval '7 days' and ${isCovered()}`);
}
