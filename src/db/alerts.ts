/** Stored alerts: lists, acknowledgements, and what other parts show of them. */
import { type Acknowledgement, type AlertRecord, type OpenAlert, sourceOfAlert } from '../domain/alert.ts';
import type { Decider } from '../domain/operator.ts';
import { audit } from './audit.ts';
import type { Database } from './connection/client.ts';
import { and, eq, isNotNull, isNull, lt, type SQL, sql } from './connection/drizzle.ts';
import { type RowOf, rfc3339 } from './connection/statements.ts';
import { alerts } from './schema.ts';

/** Returns open alerts, then resolved ones, each the newest first. @param limit undefined for all */
export function alertRecords(
  db: Database,
  { isOpenOnly, limit }: { isOpenOnly: boolean; limit: number | undefined },
): Promise<AlertRecord[]> {
  return reportedAlerts(
    db,
    sql`${isOpenOnly ? sql`and resolved_at is null` : sql``}
      order by resolved_at is not null, opened_at desc, id desc limit ${limit ?? null}`,
  );
}

export function resolvedAlerts(db: Database, limit: number): Promise<AlertRecord[]> {
  return reportedAlerts(
    db,
    sql`and resolved_at is not null order by resolved_at desc, id desc limit ${limit}`,
  );
}

/** Reads alerts that have opened. A condition that has not lasted for long enough has no alert yet. */
async function reportedAlerts(db: Database, which: SQL): Promise<AlertRecord[]> {
  const isAcknowledged = sql`
    acknowledged_at is not null and (snoozed_until is null or snoozed_until > coalesce(resolved_at, now()))`;
  return db.execute<RowOf<AlertRecord>>(sql`
    select id::int, kind, subject, summary, details, resolution,
      ${rfc3339(alerts.openedAt)} as "openedAt", ${rfc3339(alerts.resolvedAt)} as "resolvedAt",
      case when ${isAcknowledged} then json_build_object('at', ${rfc3339(alerts.acknowledgedAt)},
        'by', acknowledged_by, 'reason', acknowledged_reason, 'until', ${rfc3339(alerts.snoozedUntil)}) end as acknowledgement
    from alerts where notified_at is not null ${which}`);
}

export async function openAlerts(db: Database): Promise<OpenAlert[]> {
  const found = await alertRecords(db, { isOpenOnly: true, limit: undefined });
  return found.map(({ id, kind, subject, summary, acknowledgement }) => ({
    id,
    kind,
    subject,
    source: sourceOfAlert({ kind, subject }),
    summary,
    acknowledgement,
  }));
}

/** Returns when the open alert of a kind opened (RFC 3339); null if none is open. */
export async function openSince(db: Database, kind: string): Promise<string | null> {
  const [row] = await db
    .select({ at: rfc3339(sql`min(${alerts.openedAt})`) })
    .from(alerts)
    .where(and(eq(alerts.kind, kind), isNull(alerts.resolvedAt)));
  return row?.at ?? null;
}

/** Returns a text that changes with every open alert and every message to operators. */
export async function alertActivity(db: Database): Promise<string> {
  const [row] = await db.execute<{ mark: string }>(sql`
    select md5(concat_ws(',',
      (select string_agg(concat_ws(':', a.id, a.notified_at), ',' order by a.id) from alerts a where a.resolved_at is null),
      (select max(id) from messages where webhook is null),
      (select concat_ws(':', count(*), sum(m.attempts)) from messages m
        where m.webhook is null and m.delivered_at is null and m.gave_up_at is null))) as mark`);
  return row?.mark ?? '';
}

/** @param snoozeMs undefined: until the alert ends @returns `over` for a resolved alert, `unknown` without such an alert */
export async function acknowledgeAlert(
  db: Database,
  id: number,
  snoozeMs: number | undefined,
  decider: Decider & { readonly reason: string },
) {
  const { by, reason } = decider;
  return db.transaction(async (tx) => {
    const isShown = and(eq(alerts.id, id), isNotNull(alerts.notifiedAt));
    const [row] = await tx
      .update(alerts)
      .set({
        acknowledgedAt: sql`now()`,
        acknowledgedBy: by,
        acknowledgedReason: reason,
        snoozedUntil: snoozeMs === undefined ? null : sql`now() + make_interval(secs => ${snoozeMs / 1000})`,
      })
      .where(and(isShown, isNull(alerts.resolvedAt)))
      .returning({
        kind: alerts.kind,
        subject: alerts.subject,
        at: sql<string>`${rfc3339(alerts.acknowledgedAt)}`,
        until: rfc3339(alerts.snoozedUntil),
      });
    if (row === undefined) return (await tx.$count(alerts, isShown)) > 0 ? 'over' : 'unknown';
    const { kind, subject, at, until } = row;
    await audit(tx, decider, {
      action: snoozeMs === undefined ? 'alert.acknowledge' : 'alert.snooze',
      subject: { kind: 'alert', id },
      details: { kind, subject, until },
    });
    const acknowledgement: Acknowledgement = { at, by, reason, until };
    return { kind, subject, acknowledgement };
  });
}

/** Days for which resolved alerts are stored. */
const STORED_DAYS = 90;

export async function pruneAlerts(db: Database): Promise<void> {
  await db.delete(alerts).where(lt(alerts.resolvedAt, sql`now() - make_interval(days => ${STORED_DAYS})`));
}
