/** Changes of clusters by runs, for operators. */
import type { Sql } from '../../../db/connection/client.ts';
import { instant } from '../../../db/connection/instant-text.ts';
import { CLUSTER_STATE, JOIN_OF_STATE } from '../../../db/runs/stored-changes.ts';
import { CLUSTER_CHANGES, type ClusterChangeKind, type ClusterField } from '../../../domain/run.ts';
import {
  type ChangePage,
  type ChangeScope,
  holdsText,
  isInScope,
  isOfProvider,
  isRunInScope,
  totalsOf,
} from './machine-changes.ts';

export type ClusterState = Readonly<Partial<Record<ClusterField, string | null>>>;

export interface ClusterChange {
  readonly change: ClusterChangeKind;
  /** Null if an operator retired the source or deleted the organization. */
  readonly runId: number | null;
  readonly changedAt: string;
  readonly source: string;
  readonly organization: string;
  readonly clusterId: number;
  readonly slug: string;
  readonly name: string;
  readonly key: string;
  /** The fields that differ, or all fields of a retired or returned cluster; null for an added one. */
  readonly before: ClusterState | null;
  readonly after: ClusterState | null;
}

export interface ClusterChanges {
  readonly totals: Readonly<Record<ClusterChangeKind, number>>;
  /** By kind, in the order of `CLUSTER_CHANGES`; within a kind the newest first, then by organization and slug. */
  readonly rows: readonly ClusterChange[];
}

/** Returns one page of changes, as complete as `machineChanges`. */
export async function clusterChanges(
  sql: Sql,
  scope: ChangeScope,
  { limit, offset = 0 }: ChangePage,
  kinds: readonly ClusterChangeKind[] = CLUSTER_CHANGES,
): Promise<ClusterChanges> {
  const all = changesIn(sql, scope);
  const counts = await sql<{ change: ClusterChangeKind; count: number }[]>`
    select x.change, count(*)::int as count from ${all} group by 1`;
  const rows = await sql<ClusterChange[]>`
    with page as (
      select x.*, o.slug as organization from ${all} where x.change = any(${[...kinds]})
      order by array_position(${[...CLUSTER_CHANGES]}, x.change), x.changed_at desc, o.slug collate "C",
        c.slug collate "C", c.id
      limit ${limit ?? null} offset ${offset}
    )
    select x.change, x.run_id::float as "runId", ${instant(sql, 'x.changed_at')} as "changedAt",
      x.source_id as source, x.organization, c.id as "clusterId", c.slug, c.name, c.source_key as key,
      case when x.change <> 'added' then x.before end as before,
      case when x.change <> 'added' then case when x.change <> 'retired' then x.after end
        else ${sql.unsafe(CLUSTER_STATE)} || coalesce((
          select jsonb_object_agg(f.key, f.value order by y.id desc)
          from cluster_changes y, jsonb_each(y.before) f
          where y.organization_id = c.organization_id and y.cluster_id = c.id), '{}') end as after
    from page x join clusters c on c.id = x.cluster_id ${sql.unsafe(JOIN_OF_STATE)}
    order by array_position(${[...CLUSTER_CHANGES]}, x.change), x.changed_at desc, x.organization collate "C",
      c.slug collate "C", c.id`;
  return { totals: totalsOf(CLUSTER_CHANGES, counts), rows: await withUserNames(sql, rows) };
}

export type ClusterHistoryEntry = Pick<
  ClusterChange,
  'change' | 'runId' | 'changedAt' | 'source' | 'before' | 'after'
>;

/** Returns the history of one cluster, the newest first. `before` and `after` of its addition are null. */
export async function clusterHistory(
  sql: Sql,
  clusterId: number,
  { limit, offset = 0 }: ChangePage,
): Promise<ClusterHistoryEntry[]> {
  const rows = await sql<ClusterHistoryEntry[]>`
    select x.change, x.run_id::float as "runId", ${instant(sql, 'x.changed_at')} as "changedAt", x.source_id as source,
      x.before, case when x.change <> 'retired' then x.after end as after
    from clusters k cross join lateral (
      select c.id, c.change, c.run_id, c.changed_at, c.source_id, c.before, c.after
      from cluster_changes c where c.organization_id = k.organization_id and c.cluster_id = k.id
      union all
      select 0, 'added', n.id, n.changed_at, n.source_id, null, null
      from sync_runs n where n.id = k.added_by and n.changed_at is not null
    ) x
    where k.id = ${clusterId} order by x.id desc limit ${limit ?? null} offset ${offset}`;
  return withUserNames(sql, rows);
}

/** Changes `x` of clusters `c` of organizations `o`. `before` and `after` of an addition are null. */
function changesIn(sql: Sql, scope: ChangeScope) {
  return sql`(
    select c.change, c.run_id, c.changed_at, c.source_id, c.cluster_id, c.before, c.after
    from cluster_changes c where ${isInScope(sql, scope)}
    union all
    select 'added', n.id, n.changed_at, n.source_id, a.id, null, null
    from sync_runs n join clusters a on a.added_by = n.id
    where ${isRunInScope(sql, scope)}
  ) x join clusters c on c.id = x.cluster_id join organizations o on o.id = c.organization_id
  join regions r on r.id = c.region_id join providers p on p.id = r.provider_id and ${isOfProvider(sql, scope)}
    and ${holdsText(sql, scope, 'c.name', 'c.slug', 'c.source_key', 'o.slug', 'r.code', 'p.name')}`;
}

/** Replaces the ids of users in the states by their names. */
async function withUserNames<Row extends Pick<ClusterChange, 'before' | 'after'>>(
  sql: Sql,
  rows: readonly Row[],
): Promise<Row[]> {
  const ids = rows.flatMap(({ before, after }) => [before?.user, after?.user]).filter((id) => id != null);
  const users = await sql<{ id: string; name: string }[]>`
    select u.id::text, trim(shown.first_name || ' ' || shown.last_name) as name
    from users u join users shown on shown.id = coalesce(u.replaced_by, u.id)
    where u.id = any(${[...new Set(ids)].map(Number)})`;
  const names = new Map(users.map(({ id, name }) => [id, name]));
  const named = (state: ClusterState | null) =>
    state?.user == null ? state : { ...state, user: names.get(state.user) ?? null };
  return rows.map((row) => ({ ...row, before: named(row.before), after: named(row.after) }));
}
