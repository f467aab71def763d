/**
 * Reads documents from Postgres, each in one statement or one snapshot, so that version and rows belong together. SQL fixes
 * order and text: `COLLATE "C"`, explicit disk order, microseconds by to_char.
 */

import type { Sql } from '../../db/connection/connect.ts';
import { instant } from '../../db/connection/instant-text.ts';
import { CLUSTER_JSON } from '../../db/shown-rows.ts';
import type { ClusterDocument } from '../../domain/cluster.ts';
import type { RowName } from '../../domain/document-name.ts';
import {
  clustersContent,
  type ProviderListing,
  providersContent,
  type TokenRecord,
  tokenContent,
} from './build.ts';
import { checkKey } from './check-key.ts';
import type { DocumentContent } from './format.ts';
import type { DocumentName } from './keys.ts';
import { IS_READ, loadRegion, provenanceOf } from './load-region.ts';
import { loadPriceBook } from './price-book.ts';

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
    case 'columns':
      return (await loadRegion(sql, name.regionId))?.[name.kind];
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

const PROVIDER_JSON = `json_build_object('id', p.id, 'name', p.name, 'regions', (
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
    select id, case when retired_at is null then kind else 'retired' end || ' ' || ${instant(sql, 'verified_at', 'ms')} as stamp
    from sources where verified_at is not null
    union all
    select source_id || '/' || region_id, 'catalogue ' || ${instant(sql, 'verified_at', 'ms')} from region_freshness`;
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
           l.currency, p.price, ${instant(sql, 'p.valid_from', 'us')} as "from",
           ${instant(sql, 'p.valid_to', 'us')} as "to"
    from (select currency from lineage limit 1) l left join machine_prices p on p.machine_id = ${machineId} and p.price > 0
    order by p.valid_from desc`;
  return {
    version: numberOf(rows[0]?.version ?? undefined),
    rows: rows.flatMap(({ price, from, to }) => (price === null ? [] : { price: Number(price), from, to })),
    currency: rows[0]?.currency ?? undefined,
  };
}
