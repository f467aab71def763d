/** Opens and resolves alerts as conditions begin and end. */
import { type ClientDatabase, type Database, transactionOn } from '../../db/connection/client.ts';
import { and, inArray, isNull, lt, lte, notInArray, or, sql } from '../../db/connection/drizzle.ts';
import { nameOf } from '../../db/connection/statements.ts';
import type { JudgedSource } from '../../db/problems.ts';
import { alerts } from '../../db/schema.ts';
import type { Condition } from '../../domain/alert.ts';
import { type AlertChanges, type AlertRow, messagesFor } from './alert-messages.ts';
import { findConditions, findOccurrences } from './conditions.ts';
import { enqueue } from './messages.ts';
import type { AlertRules } from './rules.ts';

/** Any number that no other advisory lock of the product uses. */
const EVALUATION_LOCK = 7_155_239;
/** A large catalogue takes a minute to be published, so its backlog opens an alert only if it lasts. */
const BACKLOG_LASTS_SECONDS = 300;

/** Opens and resolves alerts, and stores their messages, in one transaction. Undefined if another worker does that. */
export async function evaluateAlerts(
  db: ClientDatabase,
  sources: readonly JudgedSource[],
  rules: AlertRules,
  now: Date,
  findMore: (db: ClientDatabase) => Promise<readonly Condition[]> = async () => [],
): Promise<AlertChanges | undefined> {
  return transactionOn(db, async (tx) => {
    const [lock] = await tx.execute<{ got: boolean }>(
      sql`select pg_try_advisory_xact_lock(${EVALUATION_LOCK}) as got`,
    );
    if (!lock?.got) return undefined;
    // Only with the lock: a worker that reads earlier may report what another worker has just reported.
    const [lasting, more, occurrences] = await Promise.all([
      findConditions(tx, sources, rules, now),
      findMore(tx),
      findOccurrences(tx, rules),
    ]);
    const changes = await reconcile(tx, [...lasting, ...more], occurrences, rules.repeatHours);
    await enqueue(tx, messagesFor(rules, changes, now));
    return changes;
  });
}

/** @param lasting an open alert without its condition resolves @param occurrences their alerts open and resolve at once */
async function reconcile(
  tx: Database,
  lasting: readonly Condition[],
  occurrences: readonly Condition[],
  repeatHours: number,
): Promise<AlertChanges> {
  const keys = lasting.map(keyOf);
  const isOver = and(isNull(alerts.resolvedAt), keys.length > 0 ? notInArray(alerts.key, keys) : undefined);
  // No message mentions an alert that ends before it has lasted for long enough.
  await tx.delete(alerts).where(and(isOver, isNull(alerts.notifiedAt)));
  const resolved = await tx
    .update(alerts)
    .set({ resolvedAt: sql`now()`, resolution: resolutionOf() })
    .where(isOver)
    .returning();
  await insertOrUpdate(tx, lasting);
  const opened = [...(await open(tx, lasting)), ...(await insertOccurrences(tx, occurrences))];
  if (keys.length === 0) return { opened, repeated: [], resolved };
  const repeated = await tx
    .update(alerts)
    .set({ notifiedAt: sql`now()`, ...UNACKNOWLEDGED })
    .where(and(inArray(alerts.key, keys), isNull(alerts.resolvedAt), isReminderDue(repeatHours)))
    .returning();
  return { opened, repeated, resolved };
}

const UNACKNOWLEDGED = {
  acknowledgedAt: null,
  acknowledgedBy: null,
  acknowledgedReason: null,
  snoozedUntil: null,
};

/** An acknowledged alert gets no reminder. A snoozed alert gets one when its snooze ends. */
const isReminderDue = (repeatHours: number) =>
  or(
    and(
      isNull(alerts.acknowledgedAt),
      lt(alerts.notifiedAt, sql`now() - make_interval(hours => ${repeatHours})`),
    ),
    lte(alerts.snoozedUntil, sql`now()`),
  );

const keyOf = ({ kind, subject }: Condition) => `${kind}:${subject}`;
const rowOf = (condition: Condition) => ({ ...condition, key: keyOf(condition) });

/** Stores new conditions. A stored one gets the current text: a younger batch may be held. */
async function insertOrUpdate(tx: Database, conditions: readonly Condition[]): Promise<void> {
  if (conditions.length === 0) return;
  const { key, summary, details, resolvedAt } = alerts;
  const given = { summary: sql`excluded.summary`, details: sql`excluded.details` };
  await tx
    .insert(alerts)
    .values(conditions.map(rowOf))
    .onConflictDoUpdate({
      target: key,
      targetWhere: sql`${nameOf(resolvedAt)} is null`,
      set: given,
      setWhere: sql`(${summary}, ${details}) is distinct from (${given.summary}, ${given.details})`,
    });
}

async function insertOccurrences(tx: Database, occurrences: readonly Condition[]): Promise<AlertRow[]> {
  if (occurrences.length === 0) return [];
  const times = { notifiedAt: sql`now()`, resolvedAt: sql`now()` };
  return tx
    .insert(alerts)
    .values(occurrences.map((each) => ({ ...rowOf(each), ...times })))
    .returning();
}

async function open(tx: Database, conditions: readonly Condition[]): Promise<AlertRow[]> {
  if (conditions.length === 0) return [];
  const lasts = sql`case ${alerts.kind} when 'publication_behind' then ${BACKLOG_LASTS_SECONDS} else 0 end`;
  const hasLasted = lte(alerts.openedAt, sql`now() - make_interval(secs => ${lasts})`);
  const isNew = and(isNull(alerts.resolvedAt), isNull(alerts.notifiedAt));
  return tx
    .update(alerts)
    .set({ notifiedAt: sql`now()` })
    .where(and(inArray(alerts.key, conditions.map(keyOf)), isNew, hasLasted))
    .returning();
}

/** The decision that ended a held batch. It may be about a younger batch of the source, which replaced the alert's batch. */
function resolutionOf() {
  return sql`(
    select case b.status when 'superseded' then 'a later run replaced it'
      else case b.status when 'undone' then 'approved' else b.status end
        || coalesce(' by ' || b.decided_by, '') || coalesce(' because ' || b.reason, '') end
    from held_batches b
    where ${alerts.kind} = 'batch_held' and b.source_id = ${alerts.subject} and b.status <> 'pending'
      and b.id >= (${alerts.details} ->> 'batch')::int
    order by b.status = 'superseded', b.id desc limit 1)`;
}
