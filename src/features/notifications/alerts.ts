/** The stored alerts: the source of each, where an operator acts on it, lists, and acknowledgements. */
import { z } from 'zod';
import { audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/client.ts';
import { and, eq, isNotNull, isNull, lt, type SQL, sql } from '../../db/connection/drizzle.ts';
import { type RowOf, rfc3339 } from '../../db/connection/statements.ts';
import { alerts } from '../../db/schema.ts';
import type { Acknowledgement, OpenAlert } from '../../domain/alert.ts';
import type { Decider } from '../../domain/operator.ts';
import { readSpan } from '../../domain/text/time-span.ts';
import type { AlertRecord } from './answers.ts';
import type { CoreKind } from './settings.ts';

interface Subject {
  readonly kind: string;
  readonly subject: string;
}

interface Action {
  /** A path of the console. */
  readonly path: string;
  readonly command: string;
}

interface Details {
  readonly batch?: number;
  readonly run?: number;
  readonly machine?: number;
  readonly name?: string;
}

const pageOf = (source: string) => `/sources/${encodeURIComponent(source)}`;
const showSource = (source: string): Action => ({
  path: pageOf(source),
  command: `fleetbook source show ${source}`,
});
const showRun = (_: string, { run }: Details): Action => ({
  path: `/runs/${run}`,
  command: `fleetbook run ${run}`,
});

const OF_FLEETBOOK: Action = { path: '/alerts', command: 'fleetbook doctor' };

/** The action of each kind of the core; null for a kind about Fleetbook itself. All kinds of features are about Fleetbook. */
const ACTIONS: Readonly<Record<CoreKind, ((source: string, details: Details) => Action) | null>> = {
  batch_held: (source, { batch }) => ({
    path: batch === undefined ? '/held' : `/held/${batch}`,
    command: `fleetbook hold show ${source}`,
  }),
  source_stale: showSource,
  region_stale: showSource,
  source_failing: showSource,
  source_paused: showSource,
  sold_out: (source) => ({
    path: `${pageOf(source)}?show=excluded`,
    command: `fleetbook excluded ${source}`,
  }),
  prices_moved: showRun,
  stock_flipped: showRun,
  machine_retiring: (_, { machine, name }) => ({
    path: `/machines/${machine}`,
    command: `fleetbook machines ${name}`,
  }),
  publication_behind: null,
  cache_differs: null,
};

const actionOfKind = (kind: string) => (Object.hasOwn(ACTIONS, kind) ? ACTIONS[kind as CoreKind] : null);

/** Returns the id of the alert's source; undefined for an alert about Fleetbook itself. */
export function sourceOfAlert({ kind, subject }: Subject): string | undefined {
  // The subject of a region is `hetzner/fsn1`, that of a machine `azure/eastus/Standard_D1`, that of a run `hetzner#12`.
  return actionOfKind(kind) === null ? undefined : subject.split(/[/#]/)[0];
}

/** Returns the page and the command that solve the alert. */
export function actionOf(alert: Subject, details: unknown): Action {
  const action = actionOfKind(alert.kind);
  if (action === null) return OF_FLEETBOOK;
  return action(sourceOfAlert(alert) ?? alert.subject, (details ?? {}) as Details);
}

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

const LONGEST_SNOOZE_MS = 30 * 86_400_000;

export function snoozeSpan(text: string): number | undefined {
  const ms = readSpan(text);
  return ms !== undefined && ms <= LONGEST_SNOOZE_MS ? ms : undefined;
}

const span = z
  .string()
  .optional()
  .transform((text, context) => {
    const ms = text === undefined ? undefined : snoozeSpan(text);
    if (ms !== undefined) return ms;
    context.addIssue({
      code: 'custom',
      message: `must be a span such as 30m, 4h or 7d, at most 30d${text === undefined ? '' : `; it is ${JSON.stringify(text)}`}`,
    });
    return z.NEVER;
  });

/** How long an alert is snoozed, in milliseconds. */
export const snooze = z.object({ for: span });

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
