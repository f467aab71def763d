import type { Sql } from '../../db/connection/connect.ts';
import { selectedFacts } from '../../db/machine-facts.ts';
import { IS_PUBLISHED_OR_SOLD_OUT } from '../../db/shown-rows.ts';
import type { PublishedPlan } from '../../domain/database-plan.ts';
import type { MemoryUnit } from '../../domain/machine.ts';
import type { MachineFacts } from '../../domain/machine-facts.ts';
import type { StoredRegionPrice } from '../../domain/prices/region-price.ts';
import type { StoredTerms } from '../../domain/prices/term.ts';
import { type Element, listContent, machineElements, type RegionHead } from './build.ts';
import { ColumnsBuilder } from './build-columns.ts';
import type { Provenance } from './document.ts';
import type { DocumentContent } from './format.ts';

type Head = RegionHead &
  Provenance & {
    readonly prices: readonly StoredRegionPrice[] | null;
    readonly databases: readonly PublishedPlan[] | null;
  };

export interface RegionContents {
  readonly region: DocumentContent;
  readonly columns: DocumentContent;
}

type Row = {
  readonly head: Head | null;
  readonly id: number | null;
  readonly name: string;
  readonly ram: string;
  readonly cpu: number;
  readonly price: string;
  readonly ramUnit: MemoryUnit;
  readonly soldOut: boolean;
  readonly terms: StoredTerms | null;
  readonly termsSince: number | null;
} & MachineFacts;

export function provenanceOf(sources: readonly string[], currency: string | null | undefined): Provenance {
  return { sources, currency: currency ?? undefined };
}

/** Machines that are encoded between two turns of the event loop. */
const MACHINES_AT_ONCE = 1000;

/** The published plans of databases in region `r`. */
const DATABASES_JSON = `(
  select json_agg(json_build_object('id', d.id, 'engine', d.engine, 'name', d.name, 'nodes', d.nodes, 'cpu', d.cpu,
    'ram', d.ram, 'ramUnit', d.ram_unit, 'storage', d.storage, 'price', trim_scale(d.price)::text) order by d.price, d.id)
  from database_plans d where d.region_id = r.id and d.retired_at is null and d.price is not null)`;

export async function loadRegion(sql: Sql, regionId: number): Promise<RegionContents | undefined> {
  let head: Head | undefined;
  let elementOf: ReturnType<typeof machineElements> | undefined;
  let columns: ColumnsBuilder | undefined;
  const machines: Element[] = [];
  const take = ({ head: first, id, terms, termsSince, ...row }: Row) => {
    head ??= first ?? undefined;
    if (!head) return;
    elementOf ??= machineElements(head);
    columns ??= new ColumnsBuilder(head, head.prices, head.databases);
    // A region without machines has one row.
    if (id === null) return;
    const { name, ram, cpu, price, ramUnit, soldOut, ...facts } = row;
    const machine = { id, name, ram: Number(ram), cpu, price: Number(price), ramUnit };
    if (!soldOut) machines.push(elementOf(machine));
    columns.add({ ...machine, facts, soldOut, terms, termsSince });
  };
  let failure: unknown;
  // Only the first row has the region, which would otherwise be most of the bytes.
  await sql<Row[]>`
    select case when row_number() over (order by m.price, m.id) = 1 then json_build_object(
        'id', r.id, 'code', r.code, 'name', r.name, 'country', r.country, 'version', r.version,
        'provider', json_build_object('id', p.id, 'name', p.name), 'prices', r.prices,
        'databases', ${sql.unsafe(DATABASES_JSON)},
        -- The names of loadFreshness.
        'sources', coalesce(
          (select json_agg(distinct l.source_id || '/' || l.region_id) from machines l
           where l.region_id = ${regionId} and l.excluded_reason is null and l.retired_at is null
             and l.source_id is not null),
          -- An empty list depends on every source that has read the region.
          (select json_agg(f.source_id || '/' || f.region_id) from region_freshness f where f.region_id = ${regionId}),
          '[]'),
        'currency', (select currency from lineage)) end as head,
      m.id, m.name, m.ram, m.cpu, m.price, m.ram_unit as "ramUnit",
      ${sql.unsafe(selectedFacts('m'))},
      m.excluded_reason is not null as "soldOut", m.terms,
      case when m.terms is not null then (
        select floor(extract(epoch from h.valid_from) * 1000)::float8 from machine_terms h
        where h.machine_id = m.id and h.valid_to is null) end as "termsSince"
    from regions r
    join providers p on p.id = r.provider_id
    left join machines m on m.region_id = r.id and ${sql.unsafe(IS_PUBLISHED_OR_SOLD_OUT)}
    where r.id = ${regionId} and r.organization_id is null
    order by m.price, m.id`.cursor(MACHINES_AT_ONCE, (rows) => {
    // A cursor needs a consumer that neither waits nor throws, see decision 79.
    try {
      for (const row of rows) take(row);
    } catch (error) {
      failure = error;
    }
  });
  if (failure !== undefined) throw failure;
  if (!head || !columns) return undefined;
  const provenance = provenanceOf(head.sources, head.currency);
  const region = listContent({ kind: 'region', regionId: head.id }, head.version, machines, provenance);
  return { region, columns: columns.content(provenance) };
}

export async function loadRegionVersions(sql: Sql): Promise<Map<number, number>> {
  const rows = await sql<{ id: number; version: string }[]>`
    select r.id, r.version from regions r where ${sql.unsafe(IS_READ)}`;
  return new Map(rows.map(({ id, version }) => [id, Number(version)]));
}

/** Regions `r` that a source has read successfully at least once. */
export const IS_READ =
  'r.organization_id is null and exists (select from region_freshness f where f.region_id = r.id)';
