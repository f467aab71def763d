/** Changes of machines by runs, for operators. */

import type { Sql } from '../../../db/connection/client.ts';
import { instant } from '../../../db/connection/instant-text.ts';
import { only } from '../../../db/connection/statements.ts';
import { factPairs } from '../../../db/machine-facts.ts';
import { PERIOD_CASES } from '../../../db/prices/terms.ts';
import type { MachineFacts } from '../../../domain/machine-facts.ts';
import { MACHINE_CHANGES, type MachineChangeKind } from '../../../domain/run.ts';

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

export interface MachineChanges {
  /** Counts of all kinds, requested or not. */
  readonly totals: Readonly<Record<MachineChangeKind, number>>;
  /** In the order of the page. Within a kind the newest first, then by provider, region and name. */
  readonly rows: readonly MachineChange[];
}

/** Returns one page of changes. They are complete since `changesKeptSince`, and for each run with `changedAt`. */
export async function machineChanges(
  sql: Sql,
  scope: ChangeScope,
  { limit, offset = 0, order }: ChangePage,
  kinds: readonly MachineChangeKind[] = MACHINE_CHANGES,
): Promise<MachineChanges> {
  const recorded = await sql<{ change: MachineChangeKind; count: number }[]>`
    select c.change, count(*)::int as count from ${recordedIn(sql, scope)} group by 1`;
  const [row] = await sql<{ count: number }[]>`select count(*)::int as count from ${addedIn(sql, scope)}`;
  const added = row?.count ?? 0;
  const totals = totalsOf(MACHINE_CHANGES, recorded);
  const recordedCount = kinds.reduce((sum, kind) => sum + totals[kind], 0);
  totals.added += added;

  const rows = await sql<MachineChange[]>`
    select ${columns(sql)},
      case when c.change <> 'added' then ${sql.unsafe(STATES.old)} end as before,
      case when c.change <> 'retired' then ${sql.unsafe(STATES.new)} end as after,
      ${sql.unsafe(FACTOR)}::float as factor
    from ${recordedIn(sql, scope)} where c.change = any(${[...kinds]})
    order by ${order === 'biggest' ? sql`abs(ln(${sql.unsafe(FACTOR)})) desc nulls last,` : sql``} array_position(${[...MACHINE_CHANGES]}, c.change), c.changed_at desc, p.name collate "C",
      r.code collate "C", m.name collate "C", c.id
    limit ${limit ?? null} offset ${offset}`;
  const room = limit === undefined ? undefined : limit - rows.length;
  if (!kinds.includes('added') || added === 0 || room === 0) return { totals, rows };
  return {
    totals,
    rows: [...rows, ...(await addedMachines(sql, scope, room, Math.max(0, offset - recordedCount)))],
  };
}

export function totalsOf<Kind extends string>(
  kinds: readonly Kind[],
  counts: readonly { readonly change: Kind; readonly count: number }[],
): Record<Kind, number> {
  const found = new Map(counts.map(({ change, count }) => [change, count]));
  return Object.fromEntries(kinds.map((kind) => [kind, found.get(kind) ?? 0])) as Record<Kind, number>;
}

const columns = (sql: Sql) => sql`
  c.change, c.run_id::float as "runId", ${instant(sql, 'c.changed_at')} as "changedAt", c.source_id as source,
  p.name as provider, r.code as "regionCode", m.id as "machineId", m.name`;

/** Returns the changes of one machine, the newest first, without its addition. */
export async function machineHistory(sql: Sql, machineId: number, limit: number): Promise<MachineChange[]> {
  return sql<MachineChange[]>`
    select ${columns(sql)},
      ${sql.unsafe(STATES.old)} as before,
      case when c.change <> 'retired' then ${sql.unsafe(STATES.new)} end as after,
      ${sql.unsafe(FACTOR)}::float as factor
    from machine_changes c join machines m on m.id = c.machine_id
    join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    where c.machine_id = ${machineId} order by c.id desc limit ${limit}`;
}

/** Returns added machines in their first state: the state before their first change, or the current state. */
async function addedMachines(
  sql: Sql,
  scope: ChangeScope,
  limit: number | undefined,
  offset: number,
): Promise<MachineChange[]> {
  return sql<MachineChange[]>`
    select 'added' as change, a.run_id as "runId", a."changedAt", a.source, a.provider, a."regionCode",
      a.id as "machineId", a.name, null as before, case when c.id is null then ${sql.unsafe(STATES.stored)} else ${sql.unsafe(STATES.old)} end as after,
      null::float as factor
    from (
      select m.*, n.id::float as run_id, ${instant(sql, 'n.changed_at')} as "changedAt", n.changed_at,
        n.source_id as source, p.name as provider, r.code as "regionCode"
      from ${addedIn(sql, scope)}
      order by n.changed_at desc, p.name collate "C", r.code collate "C", m.name collate "C"
      limit ${limit ?? null} offset ${offset}
    ) a
    left join lateral (
      select * from machine_changes c where c.machine_id = a.id order by c.id limit 1
    ) c on true
    order by a.changed_at desc, a.provider collate "C", a."regionCode" collate "C", a.name collate "C"`;
}

/** Returns since when changes are complete (RFC 3339). */
export async function changesKeptSince(sql: Sql): Promise<string> {
  const rows = await sql<{ since: string }[]>`select ${instant(sql, 'changes_since')} as since from lineage`;
  return only(rows).since;
}

function recordedIn(sql: Sql, scope: ChangeScope) {
  return sql`(
    select * from machine_changes c where ${isInScope(sql, scope)}
  ) c join machines m on m.id = c.machine_id ${placed(sql, scope)}`;
}

/** Machines `m` that runs `n` added. The join finds them also if they belong to another source by now. */
function addedIn(sql: Sql, scope: ChangeScope) {
  return sql`(
    select id, source_id, changed_at from sync_runs n where ${isRunInScope(sql, scope)}
  ) n cross join sources s join machines m on m.source_id = s.id and m.added_by = n.id ${placed(sql, scope)}`;
}

function placed(sql: Sql, scope: ChangeScope) {
  return sql`join regions r on r.id = m.region_id
    join providers p on p.id = r.provider_id and ${isOfProvider(sql, scope)}
      and ${holdsText(sql, scope, 'm.name', 'r.code', 'p.name')}`;
}

export function isOfProvider(sql: Sql, scope: ChangeScope) {
  if ('runId' in scope || scope.provider === undefined) return sql`true`;
  const { provider } = scope;
  return sql`(lower(p.name) = lower(${provider}) or p.id::text = ${provider})`;
}

/** Condition: the columns, joined by spaces, contain the text. */
export function holdsText(sql: Sql, { text }: ChangeScope, ...columns: string[]) {
  if (text === undefined) return sql`true`;
  return sql`strpos(lower(concat_ws(' ', ${sql.unsafe(columns.join(', '))})), lower(${text})) > 0`;
}

export function isInScope(sql: Sql, scope: ChangeScope) {
  if (!('runId' in scope)) return sql`c.changed_at >= ${scope.since}`;
  // The time has an index, the run has none.
  const { runId } = scope;
  return sql`c.run_id = ${runId} and c.changed_at = (select changed_at from sync_runs where id = ${runId})`;
}

export function isRunInScope(sql: Sql, scope: ChangeScope) {
  return 'runId' in scope
    ? sql`n.id = ${scope.runId} and n.changed_at is not null`
    : sql`n.changed_at >= ${scope.since} and n.added > 0`;
}

/** `FACTOR` multiplies crosswise, since a quotient would be rounded. */
const minutes = (per: string) => `case ${per} ${PERIOD_CASES} end`;
const FACTOR = `case when c.old_currency = c.source_currency
    and c.old_amount > 0 and c.source_amount > 0
  then (c.source_amount * ${minutes('c.old_per')}) / (c.old_amount * ${minutes('c.source_per')}) end`;

/** Returns SQL for a `MachineState`. @param of and @param price prefixes of the columns */
const stateOf = (of: string, price: string, facts = `${of}facts`) =>
  `json_build_object('cpu', ${of}cpu, 'ram', ${of}ram, 'ramUnit', ${of}ram_unit, 'amount', ${price}amount::text,
    'per', ${price}per, 'currency', ${price}currency, 'excluded', ${of}excluded_reason, 'facts', ${facts})`;

const STATES = {
  old: stateOf('c.old_', 'c.old_'),
  new: stateOf('c.', 'c.source_'),
  stored: stateOf(
    'a.',
    'a.source_',
    `nullif(jsonb_strip_nulls(jsonb_build_object(${factPairs('a', 'fields')})), '{}')`,
  ),
};
