import { audit } from '../../db/audit.ts';
import type { Sql } from '../../db/connection/client.ts';
import type { Database } from '../../db/connection/database.ts';
import { and, eq, isNotNull, isNull, sql } from '../../db/connection/drizzle.ts';
import { instant } from '../../db/connection/instant-text.ts';
import { rfc3339 } from '../../db/connection/statements.ts';
import { type alertDeliveries, alerts } from '../../db/schema.ts';
import type { Acknowledgement, OpenAlert } from '../../domain/alert.ts';
import type { Decider } from '../../domain/operator.ts';
import { readSpan } from '../../domain/text/time-span.ts';
import { sourceOfAlert } from './subject.ts';

type AlertColumn =
  | 'id'
  | 'kind'
  | 'subject'
  | 'summary'
  | 'details'
  | 'openedAt'
  | 'resolvedAt'
  | 'resolution';

/** All instants are RFC 3339. */
export type AlertRecord = Readonly<Pick<typeof alerts.$inferSelect, AlertColumn>> & {
  /** The acknowledgement that is in force, or was when the alert ended. Null for none, and after a snooze. */
  readonly acknowledgement: Acknowledgement | null;
};

/** Returns open alerts, then resolved ones, each the newest first. @param limit undefined for all */
export async function alertRecords(
  sql: Sql,
  { isOpenOnly, limit }: { isOpenOnly: boolean; limit: number | undefined },
): Promise<AlertRecord[]> {
  return sql<AlertRecord[]>`
    ${reportedAlerts(sql)} ${isOpenOnly ? sql`and resolved_at is null` : sql``}
    order by resolved_at is not null, opened_at desc, id desc limit ${limit ?? null}`;
}

export async function resolvedAlerts(sql: Sql, limit: number): Promise<AlertRecord[]> {
  return sql<AlertRecord[]>`
    ${reportedAlerts(sql)} and resolved_at is not null order by resolved_at desc, id desc limit ${limit}`;
}

export async function openAlerts(sql: Sql): Promise<OpenAlert[]> {
  const found = await alertRecords(sql, { isOpenOnly: true, limit: undefined });
  return found.map(({ id, kind, subject, summary, acknowledgement }) => ({
    id,
    kind,
    subject,
    source: sourceOfAlert({ kind, subject }),
    summary,
    acknowledgement,
  }));
}

export async function openSince(sql: Sql, kind: string): Promise<string | null> {
  const [row] = await sql<{ at: string | null }[]>`
    select ${instant(sql, 'min(opened_at)')} as at
    from alerts where kind = ${kind} and resolved_at is null`;
  return row?.at ?? null;
}

/** Returns a text that changes with every open alert and every message. */
export async function alertActivity(sql: Sql): Promise<string> {
  const [row] = await sql<{ mark: string }[]>`
    select md5(concat_ws(',',
      (select string_agg(concat_ws(':', a.id, a.told_at), ',' order by a.id) from alerts a where a.resolved_at is null),
      (select max(id) from alert_deliveries),
      (select concat_ws(':', count(*), sum(d.attempts)) from alert_deliveries d
        where d.delivered_at is null and d.gave_up_at is null))) as mark`;
  return row?.mark ?? '';
}

const isAcknowledged = (sql: Sql) => sql`
  (acknowledged_at is not null and (snoozed_until is null or snoozed_until > coalesce(resolved_at, now())))`;

/** Alerts that have opened. A condition that has not lasted for long enough has no alert yet. */
const reportedAlerts = (sql: Sql) => sql`
  select id::int, kind, subject, summary, details, resolution,
    ${instant(sql, 'opened_at')} as "openedAt", ${instant(sql, 'resolved_at')} as "resolvedAt",
    case when ${isAcknowledged(sql)} then json_build_object('at', ${instant(sql, 'acknowledged_at')},
      'by', acknowledged_by, 'reason', acknowledged_reason, 'until', ${instant(sql, 'snoozed_until')}) end as acknowledgement
  from alerts where told_at is not null`;

type Delivery = Readonly<typeof alertDeliveries.$inferSelect>;

export interface DeliveryRecord extends Omit<Delivery, 'gaveUpAt' | 'nextAttemptAt'> {
  readonly state: 'waiting' | 'delivered' | 'given up';
  readonly nextAttemptAt: string | null;
}

/**
 * Returns a page of the messages that match, the newest first, and the number of all that match.
 * @param page.search a part of the webhook's id, the message's id, its last error or its body, in any case
 */
export async function findDeliveries(
  sql: Sql,
  page: {
    readonly search?: string | undefined;
    readonly state?: DeliveryRecord['state'] | undefined;
    readonly limit: number | undefined;
    readonly offset?: number;
  },
) {
  const { search = null, state = null, limit = null, offset = 0 } = page;
  const found = sql`from (${deliveries(sql)}) d where (${state}::text is null or state = ${state}) and (${search}::text is null
    or position(lower(${search}) in lower(concat_ws(' ', webhook, "messageId", "lastError", body::text))) > 0)`;
  const [[counted], rows] = await Promise.all([
    sql<{ total: number }[]>`select count(*)::int as total ${found}`,
    sql<DeliveryRecord[]>`select * ${found} order by id desc limit ${limit} offset ${offset}`,
  ]);
  return { total: counted?.total ?? 0, rows };
}

const deliveries = (sql: Sql) => sql`
  select id::int, webhook, message_id as "messageId", attempts, last_error as "lastError", body,
    case when delivered_at is not null then 'delivered' when gave_up_at is not null then 'given up' else 'waiting' end as state,
    ${instant(sql, 'created_at')} as "createdAt", ${instant(sql, 'delivered_at')} as "deliveredAt",
    case when delivered_at is null and gave_up_at is null then ${instant(sql, 'next_attempt_at')} end as "nextAttemptAt"
  from alert_deliveries`;

const LONGEST_SNOOZE_MS = 30 * 86_400_000;

export const SNOOZE_FORMS = 'a span such as 30m, 4h or 7d, at most 30d';

export function snoozeSpan(text: string): number | undefined {
  const ms = readSpan(text);
  return ms !== undefined && ms <= LONGEST_SNOOZE_MS ? ms : undefined;
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
