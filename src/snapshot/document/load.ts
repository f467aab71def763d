/**
 * The prepared reads of readers and publishers: each document in one statement or one snapshot, so that version and rows belong
 * together. They use postgres.js itself, which prepares each text once a connection, and sends a transaction in one
 * message. SQL fixes order and text: `COLLATE "C"`, explicit disk order, microseconds by to_char.
 */
import type { Sql } from '../../db/connection/connect.ts';
import { instantText } from '../../db/connection/statements.ts';
import { factPairs } from '../../db/machine-facts.ts';
import { CLUSTER_JSON, IS_PUBLISHED_OR_SOLD_OUT } from '../../db/published-rows.ts';
import type { ClusterDocument } from '../../domain/cluster.ts';
import type { PublishedPlan } from '../../domain/database-plan.ts';
import type { RowName } from '../../domain/document-name.ts';
import { Slice } from '../../domain/event-loop.ts';
import type { PriceBookEntry } from '../../domain/prices/price-book.ts';
import type { StoredRegionPrice } from '../../domain/prices/region-price.ts';
import {
  clustersContent,
  ListBuilder,
  machineElements,
  type ProviderListing,
  priceBookContent,
  providersContent,
  type RegionHead,
  type TokenRecord,
  tokenContent,
} from './build.ts';
import { ColumnsBuilder, type MachineWithFacts } from './columns.ts';
import type { Provenance } from './document.ts';
import type { DocumentContent } from './format.ts';
import type { DocumentName } from './keys.ts';

/** Reads all documents of a version row, the row's own document last. Empty if the row does not exist. */
export async function loadContents(sql: Sql, name: RowName): Promise<DocumentContent[]> {
  if (name.kind === 'region') {
    const contents = await loadRegion(sql, name.regionId);
    return contents ? [contents.columns, contents.region] : [];
  }
  const content = await loadContent(sql, name);
  if (!content) return [];
  if (name.kind !== 'clusters') return [content];
  // Read after the clusters: if its version is later, the row stays dirty and both are published again.
  const book = await loadPriceBook(sql, name.organizationId);
  return book ? [book, content] : [content];
}

export async function loadContent(sql: Sql, name: DocumentName): Promise<DocumentContent | undefined> {
  switch (name.kind) {
    case 'providers':
      return loadProviders(sql);
    case 'region':
      return (await readRegion(sql, LIST, name.regionId))?.region;
    case 'columns':
      return (await loadRegion(sql, name.regionId))?.columns;
    case 'clusters':
      return loadClusters(sql, name.organizationId);
    case 'price-book':
      return loadPriceBook(sql, name.organizationId);
    case 'token':
      return loadToken(sql, name.hash);
  }
}

export async function loadVersion(sql: Sql, name: DocumentName): Promise<number | undefined> {
  const [row] = await versionRows(sql, name);
  return numberOf(row?.version);
}

async function versionRows(sql: Sql, name: DocumentName): Promise<readonly { version: string }[]> {
  switch (name.kind) {
    case 'providers':
      return sql`select providers_version as version from lineage`;
    case 'region':
    case 'columns':
      return sql`select version from regions where id = ${name.regionId} and organization_id is null`;
    case 'clusters':
    case 'price-book': {
      const [, rows] = await sql.begin('read only', (tx) => [
        tx`select set_config('app.org_id', ${String(name.organizationId)}, true)`,
        tx<{ version: string }[]>`
          select clusters_version as version from organizations where id = ${name.organizationId}`,
      ]);
      return rows;
    }
    case 'token':
      return sql`select version from authenticate_token(${Buffer.from(name.hash, 'hex')})`;
  }
}

/** Reads the versions of tokens by their SHA-256 (hexadecimal), without unknown tokens. */
export async function loadTokenVersions(sql: Sql, hashes: readonly string[]): Promise<Map<string, number>> {
  const rows = await sql<{ hash: string; version: string }[]>`
    select hash, t.version
    from unnest(${[...hashes]}::text[]) hash cross join lateral authenticate_token(decode(hash, 'hex')) t`;
  return new Map(rows.map(({ hash, version }) => [hash, Number(version)]));
}

const numberOf = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Number(text);

/** Regions `r` that a source has read successfully at least once. */
const IS_READ =
  'r.organization_id is null and exists (select from region_freshness f where f.region_id = r.id)';

export const PROVIDER_JSON = `json_build_object('id', p.id, 'name', p.name, 'regions', (
  select coalesce(json_agg(json_build_object('id', r.id, 'name', r.name, 'code', r.code)
                           order by r.code collate "C"), '[]')
  from regions r where r.provider_id = p.id and ${IS_READ}))`;

async function loadProviders(sql: Sql): Promise<DocumentContent | undefined> {
  const rows = await sql<
    {
      version: string;
      currency: string | null;
      providers: ProviderListing[];
      unlisted: string[];
      sources: string[];
    }[]
  >`
    select l.providers_version as version, l.currency,
      coalesce((
        select json_agg(${sql.unsafe(PROVIDER_JSON)} order by p.id)
        from providers p
        where p.listed and exists (select from regions r where r.provider_id = p.id and ${sql.unsafe(IS_READ)})
      ), '[]') as providers,
      array(
        select p.id || '/' || r.id from regions r join providers p on p.id = r.provider_id
        where not p.listed and ${sql.unsafe(IS_READ)} order by r.id) as unlisted,
      array(
        select id from sources
        where kind = 'catalogue' and verified_at is not null and retired_at is null order by id collate "C") as sources
    from lineage l`;
  const [row] = rows;
  if (!row) return undefined;
  const { version, providers, unlisted, sources, currency } = row;
  return providersContent(Number(version), providers, provenanceOf(sources, currency), unlisted);
}

type HeadOfRegion = RegionHead &
  Provenance & {
    readonly prices?: readonly StoredRegionPrice[] | null;
    readonly databases?: readonly PublishedPlan[] | null;
  };

export interface RegionContents {
  readonly region: DocumentContent;
  readonly columns: DocumentContent;
}

function provenanceOf(sources: readonly string[], currency: string | null | undefined): Provenance {
  return { sources, currency: currency ?? undefined };
}

/** Machines of one row, which are encoded in one turn of the event loop. */
const MACHINES_AT_ONCE = 250;

/** The published plans of databases in region `r`. */
const DATABASES_JSON = `(
  select json_agg(json_build_object('id', d.id, 'engine', d.engine, 'name', d.name, 'nodes', d.nodes, 'cpu', d.cpu,
    'ram', d.ram, 'ramUnit', d.ram_unit, 'storage', d.storage, 'price', trim_scale(d.price)::text) order by d.price, d.id)
  from database_plans d where d.region_id = r.id and d.retired_at is null and d.price is not null)`;

/**
 * Each row has some of the machines, as the text of a JSON array. A region without machines has one row.
 * @param more further pairs of the head and of a machine `m`
 */
const statementOfRegion = (condition: string, more = { head: '', machine: '' }) => `
  select case when coalesce(part.number, 0) = 0 then json_build_object(
      'id', r.id, 'code', r.code, 'name', r.name, 'country', r.country, 'version', r.version,
      'provider', json_build_object('id', p.id, 'name', p.name),
      -- The names of loadFreshness.
      'sources', coalesce(
        (select json_agg(distinct l.source_id || '/' || l.region_id) from machines l
         where l.region_id = $1 and l.excluded_reason is null and l.retired_at is null and l.source_id is not null),
        -- An empty list depends on every source that has read the region.
        (select json_agg(f.source_id || '/' || f.region_id) from region_freshness f where f.region_id = $1),
        '[]'),
      'currency', (select currency from lineage)${more.head}) end as head,
    part.machines
  from regions r
  join providers p on p.id = r.provider_id
  left join (
    select number, json_agg(json_build_object('id', m.id, 'name', m.name, 'ram', m.ram, 'cpu', m.cpu, 'price', m.price,
      'ramUnit', m.ram_unit${more.machine}) order by m.price, m.id)::text as machines
    from (
      select m.*, (row_number() over (order by m.price, m.id) - 1) / ${MACHINES_AT_ONCE} as number
      from machines m
      where m.region_id = $1 and ${condition}) m
    group by number) part on true
  where r.id = $1 and r.organization_id is null
  order by part.number`;

const LIST = statementOfRegion(`${IS_PUBLISHED_OR_SOLD_OUT} and m.excluded_reason is null`);

const LIST_AND_COLUMNS = statementOfRegion(IS_PUBLISHED_OR_SOLD_OUT, {
  head: `, 'prices', r.prices, 'databases', ${DATABASES_JSON}`,
  machine: `, 'facts', json_strip_nulls(json_build_object(${factPairs('m', 'fields')})),
    'soldOut', m.excluded_reason is not null, 'stock', m.stock, 'terms', m.terms,
    'termsSince', case when m.terms is not null then (
      select floor(extract(epoch from h.valid_from) * 1000) from machine_terms h
      where h.machine_id = m.id and h.valid_to is null) end`,
});

/** @param statement `LIST`, or `LIST_AND_COLUMNS` for both of one snapshot */
async function readRegion(sql: Sql, statement: string, regionId: number) {
  const rows = await sql.unsafe<{ head: HeadOfRegion | null; machines: string | null }[]>(
    statement,
    [regionId],
    { prepare: true },
  );
  const head = rows[0]?.head;
  if (!head) return undefined;
  const elementOf = machineElements(head);
  const list = new ListBuilder();
  const columns = statement === LIST ? undefined : new ColumnsBuilder(head, head.prices, head.databases);
  const slice = new Slice();
  for (const row of rows) {
    if (slice.isOver) await slice.next();
    const machines: MachineWithFacts[] = JSON.parse(row.machines ?? '[]');
    list.add(machines.filter(({ soldOut }) => !soldOut).map(elementOf));
    if (columns) for (const machine of machines) columns.add(machine);
    // Its memory is free for the elements.
    row.machines = null;
  }
  const provenance = provenanceOf(head.sources, head.currency);
  const name = { kind: 'region', regionId: head.id } as const;
  return {
    region: list.content(name, head.version, provenance),
    columns: columns?.content(provenance),
  };
}

/** Reads the list and the columns of a region in one snapshot. */
export async function loadRegion(sql: Sql, regionId: number): Promise<RegionContents | undefined> {
  const { region, columns } = (await readRegion(sql, LIST_AND_COLUMNS, regionId)) ?? {};
  return region && columns && { region, columns };
}

export async function loadRegionVersions(sql: Sql): Promise<Map<number, number>> {
  const rows = await sql<{ id: number; version: string }[]>`
    select r.id, r.version from regions r where ${sql.unsafe(IS_READ)}`;
  return new Map(rows.map(({ id, version }) => [id, Number(version)]));
}

/** Reads clusters. A deleted organization has an empty list, whose version outranks every older copy. */
async function loadClusters(sql: Sql, organizationId: number): Promise<DocumentContent | undefined> {
  // Row-level security on app.org_id and the predicate are each sufficient alone.
  const [, rows] = await sql.begin('read only', (tx) => [
    tx`select set_config('app.org_id', ${String(organizationId)}, true)`,
    tx<
      {
        id: number;
        version: string;
        currency: string | null;
        source: string | null;
        cluster: ClusterDocument | null;
      }[]
    >`
      select o.id, o.clusters_version as version, (select currency from lineage) as currency,
        c.source_id as source, case when c.id is not null then ${tx.unsafe(CLUSTER_JSON)} end as cluster
      from organizations o
      left join clusters c on c.organization_id = o.id and c.retired_at is null and o.deleted_at is null
      left join regions r on r.id = c.region_id
      left join providers p on p.id = r.provider_id
      left join users u on u.organization_id = c.organization_id and u.id = c.user_id
      left join machines m on m.id = c.machine_id
      where o.id = ${organizationId}
      order by c.created_at, c.slug collate "C"`,
  ]);
  const [first] = rows;
  if (!first) return undefined;
  checkKey(first.id, organizationId);
  const clusters = rows.flatMap(({ cluster }) => cluster ?? []);
  const sources = new Set(rows.flatMap(({ source }) => source ?? []));
  const provenance = provenanceOf([...sources], first.currency);
  return clustersContent(organizationId, Number(first.version), clusters, provenance);
}

/** An entry `e` as `PriceBookEntry`, as JSON. */
export const BOOK_ENTRY_JSON = `json_strip_nulls(json_build_object(
  'id', e.id, 'providerId', e.provider_id, 'regionId', e.region_id, 'family', e.family, 'machineId', e.machine_id,
  'term', e.term, 'discount', trim_scale(e.discount)::text, 'price', trim_scale(e.price)::text,
  'from', ${instantText('e.valid_from', 'ms')}, 'to', ${instantText('e.valid_to', 'ms')}))`;

/** Reads the price book of an organization. That of a deleted one is empty, and its version outranks every older copy. */
async function loadPriceBook(sql: Sql, organizationId: number): Promise<DocumentContent | undefined> {
  // Row-level security on app.org_id and the predicate are each sufficient alone.
  const [, rows] = await sql.begin('read only', (tx) => [
    tx`select set_config('app.org_id', ${String(organizationId)}, true)`,
    tx<{ id: number; version: string; currency: string | null; entry: PriceBookEntry | null }[]>`
      select o.id, o.clusters_version as version, (select currency from lineage) as currency,
        case when e.id is not null then ${tx.unsafe(BOOK_ENTRY_JSON)} end as entry
      from organizations o
      left join price_book_entries e on e.organization_id = o.id and o.deleted_at is null
      where o.id = ${organizationId}
      order by e.id`,
  ]);
  const [first] = rows;
  if (!first) return undefined;
  checkKey(first.id, organizationId);
  const entries = rows.flatMap(({ entry }) => entry ?? []);
  return priceBookContent(organizationId, Number(first.version), entries, first.currency ?? undefined);
}

/** Rejects the answer to another query: a connection that mixes answers must never show one organization's data to another. */
function checkKey<T>(found: T, requested: T): void {
  if (found !== requested) throw new Error('PostgreSQL returned the answer to another query');
}

async function loadToken(sql: Sql, hash: string): Promise<DocumentContent | undefined> {
  const rows = await sql<(TokenRecord & { version: string; hash: string })[]>`
    select id, organization_id as "organizationId", scopes,
      floor(extract(epoch from expires_at) * 1000)::float8 as "expiresAt", revoked, version,
      encode(requested.hash, 'hex') as hash
    from (select ${Buffer.from(hash, 'hex')}::bytea as hash) requested, authenticate_token(requested.hash)`;
  const [row] = rows;
  if (!row) return undefined;
  const { version, hash: found, ...record } = row;
  checkKey(found, hash);
  return tokenContent(hash, Number(version), record);
}

export async function loadRegionOfMachine(sql: Sql, machineId: number): Promise<number | undefined> {
  const rows = await sql<{ regionId: number }[]>`
    select m.region_id as "regionId" from machines m join regions r on r.id = m.region_id
    where m.id = ${machineId} and r.organization_id is null`;
  return rows[0]?.regionId;
}

/**
 * Returns the freshness: source id → `<kind> <RFC 3339>`, and for catalogues `<source id>/<region id>` → the same. The kind
 * of a retired source is `retired`.
 */
export async function loadFreshness(sql: Sql): Promise<Map<string, string>> {
  const rows = await sql<{ id: string; stamp: string }[]>`
    select id, case when retired_at is null then kind else 'retired' end || ' ' || ${sql.unsafe(instantText('verified_at', 'ms'))} as stamp
    from sources where verified_at is not null
    union all
    select source_id || '/' || region_id, 'catalogue ' || ${sql.unsafe(instantText('verified_at', 'ms'))} from region_freshness`;
  return new Map(rows.map((row) => [row.id, row.stamp]));
}

export interface MachinePrices {
  /** Version of the region's document, which rises with each price; undefined for an unknown machine. */
  readonly version: number | undefined;
  readonly rows: readonly { readonly price: number; readonly from: string; readonly to: string | null }[];
  readonly currency: string | undefined;
}

/** Returns the price history of a machine. A time without a price, or with a price of 0, is a gap. */
export async function loadMachinePrices(sql: Sql, machineId: number): Promise<MachinePrices> {
  const rows = await sql<
    {
      version: string | null;
      price: string | null;
      from: string;
      to: string | null;
      currency: string | null;
    }[]
  >`
    select (select r.version from machines m join regions r on r.id = m.region_id where m.id = ${machineId}) as version,
           l.currency, p.price, ${sql.unsafe(instantText('p.valid_from', 'us'))} as "from",
           ${sql.unsafe(instantText('p.valid_to', 'us'))} as "to"
    from (select currency from lineage limit 1) l left join machine_prices p on p.machine_id = ${machineId} and p.price > 0
    order by p.valid_from desc`;
  return {
    version: numberOf(rows[0]?.version ?? undefined),
    rows: rows.flatMap(({ price, from, to }) => (price === null ? [] : { price: Number(price), from, to })),
    currency: rows[0]?.currency ?? undefined,
  };
}
