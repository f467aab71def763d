/** Alerts as they open and resolve, and the messages of webhooks. */

import { audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/connect.ts';
import { and, asc, eq, inArray, isNull, lt, lte, notInArray, or, sql } from '../../db/connection/drizzle.ts';
import { nameOf } from '../../db/connection/statements.ts';
import { alerts, alertDeliveries as deliveries } from '../../db/schema.ts';
import type { Decider } from '../../domain/operator.ts';

/** Any number that no other advisory lock of the product uses. */
const EVALUATION_LOCK = 7_155_239;

export type AlertRow = typeof alerts.$inferSelect;
export type DeliveryRow = typeof deliveries.$inferSelect;
export type NewAlert = Pick<AlertRow, 'key' | 'kind' | 'subject' | 'summary' | 'details'> & {
  /** It opens when it has lasted for so many seconds. */
  readonly lastsSeconds: number;
};
export type NewDelivery = Pick<DeliveryRow, 'webhook' | 'messageId' | 'body'>;

export interface AlertChanges {
  readonly opened: readonly AlertRow[];
  /** Open for so long that a reminder is sent, or no longer snoozed. */
  readonly repeated: readonly AlertRow[];
  readonly resolved: readonly AlertRow[];
}

export interface Found {
  /** All that is wrong now. An open alert that is not among them resolves; one that nobody was told of is forgotten. */
  readonly lasting: readonly NewAlert[];
  /** What has happened: opened and resolved at once. */
  readonly events: readonly NewAlert[];
}

/**
 * Brings the open alerts in line with what was found, in one transaction with the messages that tell of it.
 * @param find is asked when no other worker can tell of anything any more
 * @param repeatHours after which an alert that is still open counts as repeated
 * @returns undefined when another worker does the same right now
 */
export async function reconcileAlerts(
  db: Database,
  find: () => Promise<Found>,
  repeatHours: number,
  messagesOf: (changes: AlertChanges) => readonly NewDelivery[],
): Promise<AlertChanges | undefined> {
  return db.transaction(async (tx) => {
    const [lock] = await tx.execute<{ got: boolean }>(
      sql`select pg_try_advisory_xact_lock(${EVALUATION_LOCK}) as got`,
    );
    if (!lock?.got) return undefined;
    // Not before: what another worker has just told of would be told once more.
    const found = await find();
    const keys = found.lasting.map(({ key }) => key);
    const isOver = and(isNull(alerts.resolvedAt), keys.length > 0 ? notInArray(alerts.key, keys) : undefined);
    await tx.delete(alerts).where(and(isOver, isNull(alerts.toldAt)));
    const resolved = await tx
      .update(alerts)
      .set({ resolvedAt: sql`now()`, resolution: resolutionOf() })
      .where(isOver)
      .returning();
    await insert(tx, found.lasting);
    const opened = [...(await open(tx, found.lasting)), ...(await tell(tx, found.events))];
    const repeated =
      keys.length === 0
        ? []
        : await tx
            .update(alerts)
            .set({ toldAt: sql`now()`, ...UNACKNOWLEDGED })
            .where(and(inArray(alerts.key, keys), isNull(alerts.resolvedAt), isToBeRepeated(repeatHours)))
            .returning();
    const changes = { opened, repeated, resolved };
    const messages = messagesOf(changes);
    if (messages.length > 0) await tx.insert(deliveries).values([...messages]);
    return changes;
  });
}

const UNACKNOWLEDGED = {
  acknowledgedAt: null,
  acknowledgedBy: null,
  acknowledgedReason: null,
  snoozedUntil: null,
};

/** An acknowledged alert is not repeated, a snoozed one once its snooze has ended. */
const isToBeRepeated = (repeatHours: number) =>
  or(
    and(
      isNull(alerts.acknowledgedAt),
      lt(alerts.toldAt, sql`now() - make_interval(hours => ${repeatHours})`),
    ),
    lte(alerts.snoozedUntil, sql`now()`),
  );

/** Notes conditions whose key is not there yet. One that is open says what holds now: a younger batch may be held. */
async function insert(tx: Database, rows: readonly NewAlert[]): Promise<void> {
  if (rows.length === 0) return;
  const { key, summary, details, resolvedAt } = alerts;
  const given = { summary: sql`excluded.summary`, details: sql`excluded.details` };
  await tx
    .insert(alerts)
    .values(rows.map(columnsOf))
    .onConflictDoUpdate({
      target: key,
      targetWhere: sql`${nameOf(resolvedAt)} is null`,
      set: given,
      setWhere: sql`(${summary}, ${details}) is distinct from (${given.summary}, ${given.details})`,
    });
}

/** Events open and resolve at once. */
async function tell(tx: Database, rows: readonly NewAlert[]): Promise<AlertRow[]> {
  if (rows.length === 0) return [];
  const times = { toldAt: sql`now()`, resolvedAt: sql`now()` };
  return tx
    .insert(alerts)
    .values(rows.map((row) => ({ ...columnsOf(row), ...times })))
    .returning();
}

const columnsOf = ({ lastsSeconds: _, ...columns }: NewAlert) => columns;

/** Opens those that have lasted for long enough. */
async function open(tx: Database, rows: readonly NewAlert[]): Promise<AlertRow[]> {
  const opened: AlertRow[] = [];
  for (const [lastsSeconds, group] of Map.groupBy(rows, (row) => row.lastsSeconds)) {
    const keys = group.map(({ key }) => key);
    const lasted = lte(alerts.openedAt, sql`now() - make_interval(secs => ${lastsSeconds})`);
    const isDue = and(inArray(alerts.key, keys), isNull(alerts.resolvedAt), isNull(alerts.toldAt), lasted);
    opened.push(...(await tx.update(alerts).set({ toldAt: sql`now()` }).where(isDue).returning()));
  }
  return opened;
}

/**
 * The end of a held batch: the decision about it or about a younger batch of its source, which may have replaced it since
 * the last evaluation.
 */
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

/** Puts a message that was delivered or given up at the end of its webhook's line. @returns its webhook */
export async function sendAgain(db: Database, id: number, decider: Decider): Promise<string | undefined> {
  return db.transaction(async (tx) => {
    const [row] = await tx.select().from(deliveries).where(eq(deliveries.id, id));
    if (row === undefined) return undefined;
    const { webhook, messageId, body } = row;
    await tx.insert(deliveries).values({ webhook, messageId, body });
    const details = { webhook, message: messageId };
    await audit(tx, decider, { action: 'alert.resend', subject: { kind: 'delivery', id }, details });
    return webhook;
  });
}

const IS_WAITING = and(isNull(deliveries.deliveredAt), isNull(deliveries.gaveUpAt));

/** The webhooks whose next message is due. */
export async function dueWebhooks(db: Database): Promise<string[]> {
  const next = db
    .selectDistinctOn([deliveries.webhook], { webhook: deliveries.webhook, at: deliveries.nextAttemptAt })
    .from(deliveries)
    .where(IS_WAITING)
    .orderBy(deliveries.webhook, asc(deliveries.id))
    .as('next');
  const rows = await db.select({ webhook: next.webhook }).from(next).where(lte(next.at, sql`now()`));
  return rows.map(({ webhook }) => webhook);
}

export type SendResult =
  | { readonly outcome: 'delivered' }
  | {
      readonly outcome: 'failed';
      readonly error: string;
      readonly pauseMs: number;
      readonly isLast: boolean;
    };

/**
 * Sends the message of a webhook that comes next, and records what came of it. The row is locked meanwhile, so that two
 * workers never send it both.
 * @returns undefined when nothing waits, or another worker sends right now
 */
export async function sendNext(
  db: Database,
  webhook: string,
  send: (delivery: DeliveryRow) => Promise<SendResult>,
): Promise<SendResult | undefined> {
  return db.transaction(async (tx) => {
    const [next] = await tx
      .select({ id: deliveries.id })
      .from(deliveries)
      .where(and(eq(deliveries.webhook, webhook), IS_WAITING))
      .orderBy(asc(deliveries.id))
      .limit(1);
    if (next === undefined) return undefined;
    const [delivery] = await tx
      .select()
      .from(deliveries)
      .where(and(eq(deliveries.id, next.id), IS_WAITING))
      .for('update', { skipLocked: true });
    if (delivery === undefined) return undefined;
    const result = await send(delivery);
    const attempts = delivery.attempts + 1;
    await tx
      .update(deliveries)
      .set(
        result.outcome === 'delivered'
          ? { attempts, deliveredAt: sql`now()`, lastError: null }
          : {
              attempts,
              lastError: result.error,
              nextAttemptAt: sql`now() + make_interval(secs => ${result.pauseMs / 1000})`,
              ...(result.isLast ? { gaveUpAt: sql`now()` } : {}),
            },
      )
      .where(eq(deliveries.id, delivery.id));
    return result;
  });
}

/** Days for which resolved alerts and messages that are done are kept. */
const KEPT_DAYS = 90;

export async function pruneAlerts(db: Database): Promise<void> {
  const isOld = (at: ReturnType<typeof nameOf>) => sql`${at} < now() - make_interval(days => ${KEPT_DAYS})`;
  await db.delete(alerts).where(isOld(nameOf(alerts.resolvedAt)));
  await db
    .delete(deliveries)
    .where(or(isOld(nameOf(deliveries.deliveredAt)), isOld(nameOf(deliveries.gaveUpAt))));
}
