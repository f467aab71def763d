import type { Sql } from './connect.ts';

/** What is published as one document each. The organization is part of a cluster document's name. */
export type DocumentName =
  | { readonly kind: 'providers' }
  | { readonly kind: 'region'; readonly regionId: number }
  | { readonly kind: 'clusters'; readonly organizationId: number }
  /** `hash` is the token's SHA-256 in hexadecimal. */
  | { readonly kind: 'token'; readonly hash: string };

export interface VersionedDocument {
  readonly name: DocumentName;
  readonly version: number;
}

type Row = { kind: DocumentName['kind']; id: number; hash: string | null; version: string };

/** The id of this database's history. */
export async function readLineage(sql: Sql): Promise<string> {
  const [row] = await sql<{ id: string }[]>`select id from lineage`;
  if (!row) throw new Error('the database has no lineage; run `fleetbook migrate`');
  return row.id;
}

/**
 * Up to `limit` documents that are ahead of what was published. Tokens come first, since a revocation must not wait
 * behind a catalogue; the list of providers comes last, so that no region is listed before it can be read.
 */
export async function dirtyDocuments(sql: Sql, limit: number): Promise<VersionedDocument[]> {
  const rows = await sql<Row[]>`
    select * from (
      (select 1 as rank, 'token' as kind, id, encode(hash, 'hex') as hash, version from tokens
        where published_version < version limit ${limit})
      union all
      (select 2, 'clusters', id, null, clusters_version from organizations
        where published_version < clusters_version limit ${limit})
      union all
      (select 3, 'region', id, null, version from regions
        where published_version < version and organization_id is null limit ${limit})
      union all
      (select 4, 'providers', 0, null, providers_version from lineage
        where providers_published_version < providers_version)
    ) dirty order by rank, id limit ${limit}`;
  return rows.map(documentOf);
}

/** Every document there is, in batches of at most `batchSize`. */
export async function* allVersions(sql: Sql, batchSize: number): AsyncGenerator<VersionedDocument[]> {
  for (const page of [tokenPage, organizationPage, regionPage]) {
    for (let after = 0; ; ) {
      const rows = await page(sql, after, batchSize);
      if (rows.length > 0) yield rows.map(documentOf);
      const last = rows.at(-1);
      if (last === undefined || rows.length < batchSize) break;
      after = last.id;
    }
  }
  const lineage = await sql<
    Row[]
  >`select 'providers' as kind, 0 as id, null as hash, providers_version as version from lineage`;
  yield lineage.map(documentOf);
}

type Page = (sql: Sql, after: number, limit: number) => Promise<Row[]>;

const tokenPage: Page = (sql, after, limit) => sql<Row[]>`
  select 'token' as kind, id, encode(hash, 'hex') as hash, version from tokens
  where id > ${after} order by id limit ${limit}`;

const organizationPage: Page = (sql, after, limit) => sql<Row[]>`
  select 'clusters' as kind, id, null as hash, clusters_version as version from organizations
  where id > ${after} order by id limit ${limit}`;

const regionPage: Page = (sql, after, limit) => sql<Row[]>`
  select 'region' as kind, id, null as hash, version from regions
  where id > ${after} and organization_id is null order by id limit ${limit}`;

/** Records that the cache holds these versions; never takes a later record back. */
export async function markPublished(sql: Sql, documents: readonly VersionedDocument[]): Promise<void> {
  const tokens: [string, number][] = [];
  const organizations: [number, number][] = [];
  const regions: [number, number][] = [];
  let providers: number | undefined;
  for (const { name, version } of documents) {
    if (name.kind === 'token') tokens.push([name.hash, version]);
    else if (name.kind === 'clusters') organizations.push([name.organizationId, version]);
    else if (name.kind === 'region') regions.push([name.regionId, version]);
    else providers = version;
  }
  if (tokens.length > 0) {
    await sql`
      update tokens set published_version = d.version
      from unnest(${tokens.map(([hash]) => hash)}::text[], ${tokens.map(([, v]) => v)}::bigint[]) d (hash, version)
      where tokens.hash = decode(d.hash, 'hex') and tokens.published_version < d.version`;
  }
  if (organizations.length > 0) {
    await sql`
      update organizations set published_version = d.version
      from unnest(${organizations.map(([id]) => id)}::int[], ${organizations.map(([, v]) => v)}::bigint[]) d (id, version)
      where organizations.id = d.id and organizations.published_version < d.version`;
  }
  if (regions.length > 0) {
    await sql`
      update regions set published_version = d.version
      from unnest(${regions.map(([id]) => id)}::int[], ${regions.map(([, v]) => v)}::bigint[]) d (id, version)
      where regions.id = d.id and regions.published_version < d.version`;
  }
  if (providers !== undefined) {
    await sql`
      update lineage set providers_published_version = ${providers} where providers_published_version < ${providers}`;
  }
}

function documentOf(row: Row): VersionedDocument {
  const version = Number(row.version);
  switch (row.kind) {
    case 'token':
      return { name: { kind: 'token', hash: row.hash ?? '' }, version };
    case 'clusters':
      return { name: { kind: 'clusters', organizationId: row.id }, version };
    case 'region':
      return { name: { kind: 'region', regionId: row.id }, version };
    case 'providers':
      return { name: { kind: 'providers' }, version };
  }
}
