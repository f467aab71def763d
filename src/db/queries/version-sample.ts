/** What the comparer asks of Postgres: a few documents by chance, and a new version of one that was damaged. */
import type { Sql } from '../connect.ts';
import type { DocumentName } from './versions.ts';

export interface SampledDocument {
  readonly name: DocumentName;
  readonly version: number;
  /** The cache has, or has had, this version. */
  readonly publishedVersion: number;
}

type Kind = DocumentName['kind'];
/** Kinds of which there are many, and the ids between which they lie. */
interface Range {
  readonly kind: Exclude<Kind, 'providers'>;
  readonly first: number;
  readonly last: number;
}

/**
 * Up to `size` documents by chance, fewer where a place of chance falls twice upon one: the list of providers, and of
 * regions, organizations and tokens as many as their share is of what there is, at least one of each that there are.
 * Costs a few looks into indexes, however many documents there are.
 * @param random as Math.random
 */
export async function sampleVersions(
  sql: Sql,
  size: number,
  random: () => number,
): Promise<SampledDocument[]> {
  const found: SampledDocument[] = [];
  for (const { range, count } of shares(await ranges(sql), size - 1)) {
    const places = Array.from({ length: count }, (_, i) =>
      // Where there is room for all, nothing is left to chance.
      count === reach(range) ? range.first + i : range.first + Math.floor(random() * reach(range)),
    );
    found.push(...(await nearest[range.kind](sql, places)).map(documentOf));
  }
  return [...found, ...(await documentVersions(sql, [{ kind: 'providers' }]))];
}

/** These documents' versions now; those that are gone are left out. */
export async function documentVersions(sql: Sql, names: readonly DocumentName[]): Promise<SampledDocument[]> {
  const hashes = names.flatMap((name) => (name.kind === 'token' ? [name.hash] : []));
  const organizations = names.flatMap((name) => (name.kind === 'clusters' ? [name.organizationId] : []));
  const regions = names.flatMap((name) => (name.kind === 'region' ? [name.regionId] : []));
  const rows = await sql<Row[]>`
    select 'token' as kind, id, encode(hash, 'hex') as hash, version, published_version as published from tokens
      where hash = any(array(select decode(h, 'hex') from unnest(${hashes}::text[]) h))
    union all
    select 'clusters', id, null, clusters_version, published_version from organizations
      where id = any(${organizations}::int[]) and deleted_at is null
    union all
    select 'region', id, null, version, published_version from regions
      where id = any(${regions}::int[]) and organization_id is null
    union all
    select 'providers', 0, null, providers_version, providers_published_version from lineage
      where ${names.some(({ kind }) => kind === 'providers')}`;
  return rows.map(documentOf);
}

/**
 * Makes the document dirty under the next version, so that it passes the fence and every reader takes it up. Nothing happens where the version is not `expected` any more: what is newer is published anyway.
 */
export async function raiseVersion(sql: Sql, name: DocumentName, expected: number): Promise<void> {
  const next = expected + 1;
  switch (name.kind) {
    case 'token':
      await sql`update tokens set version = ${next} where hash = decode(${name.hash}, 'hex') and version = ${expected}`;
      return;
    case 'clusters':
      await sql`
        update organizations set clusters_version = ${next}
        where id = ${name.organizationId} and clusters_version = ${expected}`;
      return;
    case 'region':
      await sql`update regions set version = ${next} where id = ${name.regionId} and version = ${expected}`;
      return;
    case 'providers':
      await sql`update lineage set providers_version = ${next} where providers_version = ${expected}`;
  }
}

async function ranges(sql: Sql): Promise<Range[]> {
  const rows = await sql<{ kind: Range['kind']; first: number | null; last: number | null }[]>`
    select 'token' as kind, min(id) as first, max(id) as last from tokens
    union all select 'clusters', min(id), max(id) from organizations where deleted_at is null
    union all select 'region', min(id), max(id) from regions where organization_id is null`;
  return rows.flatMap(({ kind, first, last }) =>
    first === null || last === null ? [] : [{ kind, first, last }],
  );
}

const reach = ({ first, last }: Range): number => last - first + 1;

/** How many of each: by how far the ids reach, which is about how many there are and costs no counting. */
function shares(all: readonly Range[], size: number): { range: Range; count: number }[] {
  const sum = all.reduce((total, range) => total + reach(range), 0);
  return all.map((range) => ({
    range,
    count: Math.min(reach(range), Math.max(1, Math.round((size * reach(range)) / sum))),
  }));
}

interface Row {
  readonly kind: Kind;
  readonly id: number;
  readonly hash: string | null;
  readonly version: string;
  readonly published: string;
}

/** The document at each place, or the first one after it. */
const nearest: Record<Range['kind'], (sql: Sql, places: readonly number[]) => Promise<Row[]>> = {
  token: (sql, places) => sql<Row[]>`
    select distinct 'token' as kind, d.* from unnest(${[...places]}::int[]) p (place) cross join lateral (
      select id, encode(hash, 'hex') as hash, version, published_version as published from tokens
      where id >= p.place order by id limit 1) d`,
  clusters: (sql, places) => sql<Row[]>`
    select distinct 'clusters' as kind, d.* from unnest(${[...places]}::int[]) p (place) cross join lateral (
      select id, null as hash, clusters_version as version, published_version as published from organizations
      where id >= p.place and deleted_at is null order by id limit 1) d`,
  region: (sql, places) => sql<Row[]>`
    select distinct 'region' as kind, d.* from unnest(${[...places]}::int[]) p (place) cross join lateral (
      select id, null as hash, version, published_version as published from regions
      where id >= p.place and organization_id is null order by id limit 1) d`,
};

function documentOf({ kind, id, hash, version, published }: Row): SampledDocument {
  return {
    name: nameOf(kind, id, hash),
    version: Number(version),
    publishedVersion: Number(published),
  };
}

function nameOf(kind: Kind, id: number, hash: string | null): DocumentName {
  switch (kind) {
    case 'token':
      return { kind, hash: hash ?? '' };
    case 'clusters':
      return { kind, organizationId: id };
    case 'region':
      return { kind, regionId: id };
    case 'providers':
      return { kind };
  }
}
