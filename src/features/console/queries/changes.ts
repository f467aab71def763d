/** What runs changed, for operators: pages of changed machines and clusters, and the history of one of them. */
import type { Database } from '../../../db/connection/client.ts';
import { type SQL, sql } from '../../../db/connection/drizzle.ts';
import { array, only, type RowOf, rfc3339 } from '../../../db/connection/statements.ts';
import { factPairs } from '../../../db/machine-facts.ts';
import { PERIOD_CASES } from '../../../db/prices/terms.ts';
import { CLUSTER_STATE, JOIN_OF_STATE } from '../../../db/runs/stored-changes.ts';
import { lineage } from '../../../db/schema.ts';
import type { MachineFacts } from '../../../domain/machine-facts.ts';
import {
  CLUSTER_CHANGES,
  type ClusterChangeKind,
  type ClusterField,
  MACHINE_CHANGES,
  type MachineChangeKind,
} from '../../../domain/run.ts';
import type { RunRecord } from './runs.ts';

/** All changes of one run, or all since a time. */
export type ChangeScope = {
  /** Part of the name, region, provider or (for clusters) organization, in upper or lower case. */
  readonly text?: string | undefined;
} & (
  | { readonly runId: number }
  | {
      readonly since: string;
      /** A provider's name, in upper or lower case, or its id. */
      readonly provider?: string | undefined;
    }
);

export interface ChangePage {
  readonly limit: number | undefined;
  readonly offset?: number;
  /** `kind` by default. `biggest`: the largest price changes of all kinds first. */
  readonly order?: 'kind' | 'biggest' | undefined;
}

interface Changes<Kind extends string, Row> {
  /** Counts of all kinds, requested or not. */
  readonly totals: Readonly<Record<Kind, number>>;
  /** In the order of the page. */
  readonly rows: readonly Row[];
}

/** The order within a kind: the newest first, then by provider, region and name. */
export type MachineChanges = Changes<MachineChangeKind, MachineChange>;

/** The order is that of `CLUSTER_CHANGES`, within a kind the newest first, then by organization and slug. */
export type ClusterChanges = Changes<ClusterChangeKind, ClusterChange>;

export type RunDiff =
  | ({ readonly of: 'machines' } & MachineChanges)
  | ({ readonly of: 'clusters' } & ClusterChanges)
  | Unlisted;

/** Runs of these sources have no record of single rows. */
export type Unlisted = { readonly of: 'rates' } | { readonly of: 'lifecycles' };

/** Returns true if the changes of the run are still stored. */
export function isKept({ changedAt, added, changed, retired }: RunRecord): boolean {
  return changedAt !== null || (added ?? 0) + (changed ?? 0) + (retired ?? 0) === 0;
}

const CHANGED = MACHINE_CHANGES.filter((kind) => !['added', 'returned', 'retired'].includes(kind));

/** Returns how many changed rows the whole diff does not show: only their converted price changed. */
export function unshown(run: RunRecord, diff: RunDiff): number {
  if (diff.of === 'rates' || diff.of === 'lifecycles' || run.changedAt === null) return 0;
  const shown =
    diff.of === 'clusters' ? diff.totals.changed : CHANGED.reduce((sum, kind) => sum + diff.totals[kind], 0);
  return Math.max(0, (run.changed ?? 0) - shown);
}

/** Returns since when changes are complete (RFC 3339). */
export async function changesKeptSince(db: Database): Promise<string> {
  return only(await db.select({ since: rfc3339(lineage.changesSince) }).from(lineage)).since;
}

interface ListedChanges<Kind extends string> extends ChangePage {
  /** All kinds, in the order of every display. */
  readonly all: readonly Kind[];
  /** The requested kinds. */
  readonly kinds: readonly Kind[];
  /** SQL of a FROM clause with the changes `x`. */
  readonly changes: SQL;
  /** SQL of the order. */
  readonly by: SQL;
}

/** Counts the changes of each kind, and reads one page of the requested kinds. @param read gets the clauses of the page, from FROM to OFFSET */
async function pageOfChanges<Kind extends string, Row>(
  db: Database,
  { all, kinds, changes, by, limit, offset = 0 }: ListedChanges<Kind>,
  read: (page: SQL) => Promise<readonly Row[]>,
): Promise<{ readonly totals: Record<Kind, number>; readonly rows: readonly Row[] }> {
  const counted = await db.execute<RowOf<{ change: Kind; count: number }>>(
    sql`select x.change, count(*)::int as count from ${changes} group by 1`,
  );
  const counts = new Map(counted.map(({ change, count }) => [change, count]));
  const rows = await read(sql`
    from ${changes} where x.change = any(${array(kinds, 'text')})
    order by ${by} limit ${limit ?? null} offset ${offset}`);
  return {
    totals: Object.fromEntries(all.map((kind) => [kind, counts.get(kind) ?? 0])) as Record<Kind, number>,
    rows,
  };
}

/** SQL of the order of changes `x`: by kind, within a kind the newest first. */
const byKind = (all: readonly string[]) =>
  sql`array_position(${array(all, 'text')}, x.change), x.changed_at desc`;

/** Condition on changes `x`. */
function isInScope(scope: ChangeScope): SQL {
  if (!('runId' in scope)) return sql`x.changed_at >= ${scope.since}`;
  // The time has an index, the run has none.
  const { runId } = scope;
  return sql`x.run_id = ${runId} and x.changed_at = (select changed_at from sync_runs where id = ${runId})`;
}

/** Condition on runs `n` that added machines or clusters. */
function isRunInScope(scope: ChangeScope): SQL {
  return 'runId' in scope
    ? sql`n.id = ${scope.runId} and n.changed_at is not null`
    : sql`n.changed_at >= ${scope.since} and n.added > 0`;
}

/** SQL that joins the region `r` and the provider `p`, and selects by provider and text. @param columns those with the text, as SQL */
function placedIn(scope: ChangeScope, regionId: string, ...columns: string[]): SQL {
  return sql`join regions r on r.id = ${sql.raw(regionId)}
    join providers p on p.id = r.provider_id and ${isOfProvider(scope)} and ${holdsText(scope, columns)}`;
}

function isOfProvider(scope: ChangeScope): SQL {
  if ('runId' in scope || scope.provider === undefined) return sql`true`;
  const { provider } = scope;
  return sql`(lower(p.name) = lower(${provider}) or p.id::text = ${provider})`;
}

/** Condition: the columns, joined by spaces, contain the text. */
function holdsText({ text }: ChangeScope, columns: readonly string[]): SQL {
  if (text === undefined) return sql`true`;
  return sql`strpos(lower(concat_ws(' ', ${sql.raw(columns.join(', '))})), lower(${text})) > 0`;
}

export interface MachineState {
  readonly cpu: number;
  readonly ram: number;
  readonly ramUnit: 'Binary' | 'Decimal';
  readonly amount: string | null;
  readonly per: 'minute' | 'hour' | 'month' | null;
  readonly currency: string | null;
  readonly excluded: string | null;
  readonly facts: Partial<MachineFacts> | null;
}

export interface MachineChange {
  readonly change: MachineChangeKind;
  /** Null if an operator retired the source. */
  readonly runId: number | null;
  readonly changedAt: string;
  readonly source: string;
  readonly provider: string;
  readonly regionCode: string;
  readonly machineId: number;
  readonly name: string;
  /** Null for an added machine; the state at retirement for a returned one. */
  readonly before: MachineState | null;
  readonly after: MachineState | null;
  /** New price divided by old price, per minute; null without two prices in the same currency. */
  readonly factor: number | null;
}

/** Returns one page of changes. They are complete since `changesKeptSince`, and for each run with `changedAt`. */
export async function machineChanges(
  db: Database,
  scope: ChangeScope,
  page: ChangePage,
  kinds: readonly MachineChangeKind[] = MACHINE_CHANGES,
): Promise<MachineChanges> {
  const biggest = page.order === 'biggest' ? sql`abs(ln(${FACTOR})) desc nulls last,` : sql``;
  const recorded = {
    ...page,
    all: MACHINE_CHANGES,
    kinds,
    changes: sql`(select * from machine_changes x where ${isInScope(scope)}) x
      join machines m on m.id = x.machine_id ${placedIn(scope, 'm.region_id', 'm.name', 'r.code', 'p.name')}`,
    by: sql`${biggest} ${byKind(MACHINE_CHANGES)}, p.name collate "C", r.code collate "C", m.name collate "C", x.id`,
  };
  const { totals, rows } = await pageOfChanges(db, recorded, (clauses) =>
    db.execute<RowOf<MachineChange>>(sql`
      select ${MACHINE_COLUMNS}, case when x.change <> 'added' then ${STATES.old} end as before,
        ${NEW_STATE} as after, ${FACTOR}::float as factor
      ${clauses}`),
  );
  const recordedCount = kinds.reduce((sum, kind) => sum + totals[kind], 0);
  const [row] = await db.execute<RowOf<{ count: number }>>(
    sql`select count(*)::int as count from ${addedMachinesIn(scope)}`,
  );
  const added = row?.count ?? 0;
  totals.added += added;
  const { limit, offset = 0 } = page;
  const room = limit === undefined ? undefined : limit - rows.length;
  if (!kinds.includes('added') || added === 0 || room === 0) return { totals, rows };
  const rest = { limit: room, offset: Math.max(0, offset - recordedCount) };
  return { totals, rows: [...rows, ...(await addedMachines(db, scope, rest))] };
}

/** Returns added machines in their first state: the state before their first change, or the current state. */
async function addedMachines(
  db: Database,
  scope: ChangeScope,
  { limit, offset = 0 }: ChangePage,
): Promise<MachineChange[]> {
  return db.execute<RowOf<MachineChange>>(sql`
    select 'added' as change, a.run_id as "runId", ${rfc3339(sql`a.changed_at`)} as "changedAt", a.source, a.provider,
      a."regionCode", a.id as "machineId", a.name, null as before,
      case when x.id is null then ${STATES.stored} else ${STATES.old} end as after, null::float as factor
    from (
      select m.*, n.id::float as run_id, n.changed_at, n.source_id as source, p.name as provider, r.code as "regionCode"
      from ${addedMachinesIn(scope)}
      order by n.changed_at desc, p.name collate "C", r.code collate "C", m.name collate "C"
      limit ${limit ?? null} offset ${offset}
    ) a
    left join lateral (
      select * from machine_changes x where x.machine_id = a.id order by x.id limit 1
    ) x on true
    order by a.changed_at desc, a.provider collate "C", a."regionCode" collate "C", a.name collate "C"`);
}

/** SQL: machines `m` that runs `n` added. The join finds them also if they belong to another source by now. */
function addedMachinesIn(scope: ChangeScope): SQL {
  return sql`(
    select id, source_id, changed_at from sync_runs n where ${isRunInScope(scope)}
  ) n cross join sources s join machines m on m.source_id = s.id and m.added_by = n.id
    ${placedIn(scope, 'm.region_id', 'm.name', 'r.code', 'p.name')}`;
}

/** Returns the changes of one machine, the newest first, without its addition. */
export async function machineHistory(
  db: Database,
  machineId: number,
  limit: number,
): Promise<MachineChange[]> {
  return db.execute<RowOf<MachineChange>>(sql`
    select ${MACHINE_COLUMNS}, ${STATES.old} as before, ${NEW_STATE} as after, ${FACTOR}::float as factor
    from machine_changes x join machines m on m.id = x.machine_id
    join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    where x.machine_id = ${machineId} order by x.id desc limit ${limit}`);
}

const MACHINE_COLUMNS = sql`
  x.change, x.run_id::float as "runId", ${rfc3339(sql`x.changed_at`)} as "changedAt", x.source_id as source,
  p.name as provider, r.code as "regionCode", m.id as "machineId", m.name`;

/** `FACTOR` multiplies crosswise, since a quotient would be rounded. */
const minutesOf = (per: string) => `case ${per} ${PERIOD_CASES} end`;
const FACTOR = sql.raw(`case when x.old_currency = x.source_currency
    and x.old_amount > 0 and x.source_amount > 0
  then (x.source_amount * ${minutesOf('x.old_per')}) / (x.old_amount * ${minutesOf('x.source_per')}) end`);

/** Returns SQL for a `MachineState`. @param of and @param price prefixes of the columns */
const stateOf = (of: string, price: string, facts = `${of}facts`) =>
  sql.raw(`json_build_object('cpu', ${of}cpu, 'ram', ${of}ram, 'ramUnit', ${of}ram_unit, 'amount', ${price}amount::text,
    'per', ${price}per, 'currency', ${price}currency, 'excluded', ${of}excluded_reason, 'facts', ${facts})`);

const STATES = {
  old: stateOf('x.old_', 'x.old_'),
  new: stateOf('x.', 'x.source_'),
  stored: stateOf(
    'a.',
    'a.source_',
    `nullif(jsonb_strip_nulls(jsonb_build_object(${factPairs('a', 'fields')})), '{}')`,
  ),
};

const NEW_STATE = sql`case when x.change <> 'retired' then ${STATES.new} end`;

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

/** Returns one page of changes, as complete as `machineChanges`. */
export async function clusterChanges(
  db: Database,
  scope: ChangeScope,
  page: ChangePage,
  kinds: readonly ClusterChangeKind[] = CLUSTER_CHANGES,
): Promise<ClusterChanges> {
  const by = (organization: SQL) => sql`
    ${byKind(CLUSTER_CHANGES)}, ${organization} collate "C", c.slug collate "C", c.id`;
  // An added cluster has no stored change: its state is the present one, with the oldest of each changed field.
  const first = sql`${sql.raw(CLUSTER_STATE)} || coalesce((
    select jsonb_object_agg(f.key, f.value order by y.id desc)
    from cluster_changes y, jsonb_each(y.before) f
    where y.organization_id = c.organization_id and y.cluster_id = c.id), '{}')`;
  const listed = {
    ...page,
    all: CLUSTER_CHANGES,
    kinds,
    changes: clusterChangesIn(scope),
    by: by(sql`o.slug`),
  };
  const { totals, rows } = await pageOfChanges(db, listed, (clauses) =>
    db.execute<RowOf<ClusterChange>>(sql`
      with page as (select x.*, o.slug as organization ${clauses})
      select x.change, x.run_id::float as "runId", ${rfc3339(sql`x.changed_at`)} as "changedAt",
        x.source_id as source, x.organization, c.id as "clusterId", c.slug, c.name, c.source_key as key,
        case when x.change <> 'added' then x.before end as before,
        case x.change when 'added' then ${first} when 'retired' then null else x.after end as after
      from page x join clusters c on c.id = x.cluster_id ${sql.raw(JOIN_OF_STATE)}
      order by ${by(sql`x.organization`)}`),
  );
  return { totals, rows: await withUserNames(db, rows) };
}

/** SQL: changes `x` of clusters `c` of organizations `o`. `before` and `after` of an addition are null. */
function clusterChangesIn(scope: ChangeScope): SQL {
  return sql`(
    select x.change, x.run_id, x.changed_at, x.source_id, x.cluster_id, x.before, x.after
    from cluster_changes x where ${isInScope(scope)}
    union all
    select 'added', n.id, n.changed_at, n.source_id, a.id, null, null
    from sync_runs n join clusters a on a.added_by = n.id
    where ${isRunInScope(scope)}
  ) x join clusters c on c.id = x.cluster_id join organizations o on o.id = c.organization_id
    ${placedIn(scope, 'c.region_id', 'c.name', 'c.slug', 'c.source_key', 'o.slug', 'r.code', 'p.name')}`;
}

export type ClusterHistoryEntry = Pick<
  ClusterChange,
  'change' | 'runId' | 'changedAt' | 'source' | 'before' | 'after'
>;

/** Returns the history of one cluster, the newest first. `before` and `after` of its addition are null. */
export async function clusterHistory(
  db: Database,
  clusterId: number,
  { limit, offset = 0 }: ChangePage,
): Promise<ClusterHistoryEntry[]> {
  const rows = await db.execute<RowOf<ClusterHistoryEntry>>(sql`
    select x.change, x.run_id::float as "runId", ${rfc3339(sql`x.changed_at`)} as "changedAt", x.source_id as source,
      x.before, case when x.change <> 'retired' then x.after end as after
    from clusters k cross join lateral (
      select c.id, c.change, c.run_id, c.changed_at, c.source_id, c.before, c.after
      from cluster_changes c where c.organization_id = k.organization_id and c.cluster_id = k.id
      union all
      select 0, 'added', n.id, n.changed_at, n.source_id, null, null
      from sync_runs n where n.id = k.added_by and n.changed_at is not null
    ) x
    where k.id = ${clusterId} order by x.id desc limit ${limit ?? null} offset ${offset}`);
  return withUserNames(db, rows);
}

/** Replaces the ids of users in the states by their names. */
async function withUserNames<Row extends Pick<ClusterChange, 'before' | 'after'>>(
  db: Database,
  rows: readonly Row[],
): Promise<Row[]> {
  const ids = rows.flatMap(({ before, after }) => [before?.user, after?.user]).filter((id) => id != null);
  const users = await db.execute<RowOf<{ id: string; name: string }>>(sql`
    select u.id::text, trim(shown.first_name || ' ' || shown.last_name) as name
    from users u join users shown on shown.id = coalesce(u.replaced_by, u.id)
    where u.id = any(${array([...new Set(ids)].map(Number), 'integer')})`);
  const names = new Map(users.map(({ id, name }) => [id, name]));
  const named = (state: ClusterState | null) =>
    state?.user == null ? state : { ...state, user: names.get(state.user) ?? null };
  return rows.map((row) => ({ ...row, before: named(row.before), after: named(row.after) }));
}
