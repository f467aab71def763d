/** What alerts are made of, and what became of them. */

import { audit } from '../../db/audit.ts';
import type { Sql } from '../../db/connection/client.ts';
import type { Database } from '../../db/connection/database.ts';
import { and, eq, isNotNull, isNull, sql } from '../../db/connection/drizzle.ts';
import { alerts } from '../../db/schema.ts';
import type { AcknowledgedAlert, Acknowledgement } from '../../domain/alert.ts';
import type { Decider } from '../../domain/operator.ts';
import { sourceOfAlert } from './subject.ts';

export interface MovedPrices {
  readonly sourceId: string;
  readonly runId: number;
  readonly count: number;
  /** The largest moves: amounts as the source said them. */
  readonly first: readonly {
    readonly machine: string;
    readonly region: string;
    readonly before: string;
    readonly after: string;
    readonly per: string;
    readonly currency: string;
  }[];
}

/** The clocks of a worker and of the database may differ by so much. */
const CLOCKS = '5 s';

/**
 * Prices that moved by more than the factor `ratio`, for each run of the last hour without such an alert. Prices that an
 * operator approved do not count.
 */
export async function movedPrices(sql: Sql, kind: string, ratio: number): Promise<MovedPrices[]> {
  return sql<MovedPrices[]>`
    with moved as (
      select n.source_id, n.id as run_id, m.name, r.code, old.source_amount as before, new.source_amount as after,
        new.source_per as per, new.source_currency as currency,
        greatest(new.source_amount / old.source_amount, old.source_amount / new.source_amount) as factor
      from sync_runs n
      join machine_prices new
        on new.valid_from between n.started_at - ${CLOCKS}::interval and n.finished_at + ${CLOCKS}::interval
      join machines m on m.id = new.machine_id and m.source_id = n.source_id
      join regions r on r.id = m.region_id
      join machine_prices old on old.machine_id = new.machine_id and old.valid_to = new.valid_from
      where n.finished_at > now() - interval '1 hour' and n.outcome = 'changed' and n.changed > 0
        and not exists (select from alerts a where a.key = ${kind} || ':' || n.source_id || '#' || n.id)
        and old.source_amount > 0 and new.source_amount > 0
        and not exists (
          select from sync_runs d where d.source_id = n.source_id and d.cause = 'decision'
            and new.valid_from between d.started_at - ${CLOCKS}::interval and d.finished_at + ${CLOCKS}::interval)
        and old.source_per = new.source_per and old.source_currency = new.source_currency
    ), counted as (
      select *, row_number() over (partition by run_id order by factor desc, code, name) as place
      from moved where factor > ${ratio}
    )
    select source_id as "sourceId", run_id::int as "runId", count(*)::int as count,
      json_agg(json_build_object('machine', name, 'region', code, 'before', before::text, 'after', after::text,
        'per', per, 'currency', currency) order by place) filter (where place <= 5) as first
    from counted group by source_id, run_id order by run_id`;
}

export interface AlertRecord {
  readonly id: number;
  readonly kind: string;
  readonly subject: string;
  readonly summary: string;
  readonly details: unknown;
  /** RFC 3339, as all instants here. */
  readonly openedAt: string;
  readonly resolvedAt: string | null;
  readonly resolution: string | null;
  /** Of an alert that is over: the one that held when it ended. Null for none, and after a snooze. */
  readonly acknowledgement: Acknowledgement | null;
}

/** Open alerts first, then the newest. @param limit undefined for all */
export async function alertRecords(
  sql: Sql,
  { isOpenOnly, limit }: { isOpenOnly: boolean; limit: number | undefined },
): Promise<AlertRecord[]> {
  return sql<AlertRecord[]>`
    ${toldAlerts(sql)} ${isOpenOnly ? sql`and resolved_at is null` : sql``}
    order by resolved_at is not null, opened_at desc, id desc limit ${limit ?? null}`;
}

/** Those that are over, what ended last first. */
export async function resolvedAlerts(sql: Sql, limit: number): Promise<AlertRecord[]> {
  return sql<AlertRecord[]>`
    ${toldAlerts(sql)} and resolved_at is not null order by resolved_at desc, id desc limit ${limit}`;
}

/** Open alerts that are acknowledged or snoozed now. */
export async function acknowledgedAlerts(sql: Sql): Promise<AcknowledgedAlert[]> {
  const found = await sql<(AlertRecord & Pick<AcknowledgedAlert, 'acknowledgement'>)[]>`
    ${toldAlerts(sql)} and resolved_at is null and ${isAcknowledged(sql)} order by opened_at desc, id desc`;
  return found.map((alert) => ({ ...alert, source: sourceOfAlert(alert) }));
}

/** Returns when the open alert of a kind opened (RFC 3339); null if none is open. */
export async function openSince(sql: Sql, kind: string): Promise<string | null> {
  const [row] = await sql<{ at: string | null }[]>`
    select to_char(min(opened_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as at
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

const toldAlerts = (sql: Sql) => sql`
  select id::int, kind, subject, summary, details, resolution,
    to_char(opened_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "openedAt",
    to_char(resolved_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "resolvedAt",
    case when ${isAcknowledged(sql)} then json_build_object(
      'at', to_char(acknowledged_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
      'by', acknowledged_by, 'reason', acknowledged_reason,
      'until', to_char(snoozed_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) end as acknowledgement
  from alerts where told_at is not null`;

export interface DeliveryRecord {
  readonly id: number;
  readonly webhook: string;
  readonly messageId: string;
  readonly createdAt: string;
  readonly attempts: number;
  readonly state: 'waiting' | 'delivered' | 'given up';
  readonly deliveredAt: string | null;
  /** Of one that waits. */
  readonly nextAttemptAt: string | null;
  readonly lastError: string | null;
  readonly body: unknown;
}

/** The newest first. @param limit undefined for all */
export async function deliveryRecords(sql: Sql, limit: number | undefined): Promise<DeliveryRecord[]> {
  return sql<DeliveryRecord[]>`${deliveries(sql)} order by id desc limit ${limit ?? null}`;
}

export interface DeliverySearch {
  /** A part of the webhook's id, the message's id, its last error, or what it tells; in any case. */
  readonly search: string | undefined;
  readonly state: DeliveryRecord['state'] | undefined;
  readonly limit: number;
  readonly offset: number;
}

/** A page of those that fit, the newest first, and how many there are. */
export async function findDeliveries(
  sql: Sql,
  { search, state, limit, offset }: DeliverySearch,
): Promise<{ readonly total: number; readonly rows: readonly DeliveryRecord[] }> {
  const fits = sql`
    (${state ?? null}::text is null or state = ${state ?? null}) and (${search ?? null}::text is null or
      position(lower(${search ?? null}) in lower(concat_ws(' ', webhook, "messageId", "lastError", body::text))) > 0)`;
  const [[counted], rows] = await Promise.all([
    sql<
      { total: number }[]
    >`select count(*)::int as total from (${deliveries(sql)}) all_of_them where ${fits}`,
    sql<DeliveryRecord[]>`select * from (${deliveries(sql)}) all_of_them where ${fits}
      order by id desc limit ${limit} offset ${offset}`,
  ]);
  return { total: counted?.total ?? 0, rows };
}

const deliveries = (sql: Sql) => sql`
  select id::int, webhook, message_id as "messageId", attempts, last_error as "lastError", body,
    case when delivered_at is not null then 'delivered' when gave_up_at is not null then 'given up' else 'waiting' end as state,
    to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "createdAt",
    to_char(delivered_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "deliveredAt",
    case when delivered_at is null and gave_up_at is null
      then to_char(next_attempt_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') end as "nextAttemptAt"
  from alert_deliveries`;

export type Acknowledged =
  | {
      readonly outcome: 'acknowledged';
      readonly kind: string;
      readonly subject: string;
      readonly acknowledgement: Acknowledgement;
    }
  | { readonly outcome: 'over' }
  | { readonly outcome: 'unknown' };

const ACKNOWLEDGEMENT = {
  at: sql<string>`to_char(${alerts.acknowledgedAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
  until: sql<string | null>`to_char(${alerts.snoozedUntil} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
};

/**
 * Acknowledges an open alert, in place of an earlier acknowledgement.
 * @param snoozeMs after which reminders are sent again; undefined for an acknowledgement until the alert ends
 */
export async function acknowledgeAlert(
  db: Database,
  id: number,
  snoozeMs: number | undefined,
  decider: Decider & { readonly reason: string },
): Promise<Acknowledged> {
  return db.transaction(async (tx) => {
    const isShown = and(eq(alerts.id, id), isNotNull(alerts.toldAt));
    const [row] = await tx
      .update(alerts)
      .set({
        acknowledgedAt: sql`now()`,
        acknowledgedBy: decider.by,
        acknowledgedReason: decider.reason,
        snoozedUntil: snoozeMs === undefined ? null : sql`now() + make_interval(secs => ${snoozeMs / 1000})`,
      })
      .where(and(isShown, isNull(alerts.resolvedAt)))
      .returning({ kind: alerts.kind, subject: alerts.subject, ...ACKNOWLEDGEMENT });
    if (row === undefined) {
      const [over] = await tx.select({ id: alerts.id }).from(alerts).where(isShown);
      return { outcome: over ? 'over' : 'unknown' };
    }
    const { kind, subject, at, until } = row;
    await audit(tx, decider, {
      action: snoozeMs === undefined ? 'alert.acknowledge' : 'alert.snooze',
      subject: { kind: 'alert', id },
      details: { kind, subject, until },
    });
    const acknowledgement = { at, by: decider.by, reason: decider.reason, until };
    return { outcome: 'acknowledged', kind, subject, acknowledgement };
  });
}
