import type { Sql } from '../connect.ts';

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

/**
 * Records that the cache holds these versions; never takes a later record back. It never holds a row while it waits for
 * another one, which a sync or a second publisher may have: they would wait for each other.
 */
export async function markPublished(sql: Sql, documents: readonly VersionedDocument[]): Promise<void> {
  const rows: Record<keyof typeof ROWS, Map<string, number>> = {
    token: new Map(),
    clusters: new Map(),
    region: new Map(),
  };
  let providers: number | undefined;
  for (const { name, version } of documents) {
    if (name.kind === 'token') rows.token.set(`\\x${name.hash}`, version);
    else if (name.kind === 'clusters') rows.clusters.set(String(name.organizationId), version);
    else if (name.kind === 'region') rows.region.set(String(name.regionId), version);
    else providers = version;
  }
  for (const kind of ['token', 'clusters', 'region'] as const) {
    if (rows[kind].size === 0) continue;
    await markFree(sql, kind, rows[kind]);
    for (const { key, version } of await unmarked(sql, kind, rows[kind]))
      await markOne(sql, kind, key, version);
  }
  if (providers !== undefined) {
    await sql`
      update lineage set providers_published_version = ${providers} where providers_published_version < ${providers}`;
  }
}

/** Where the published version of a document stands: the table, and the column that says which document it is. */
const ROWS = {
  token: { table: 'tokens', column: 'hash', type: 'bytea' },
  clusters: { table: 'organizations', column: 'id', type: 'integer' },
  region: { table: 'regions', column: 'id', type: 'integer' },
} as const;

type Marks = ReadonlyMap<string, number>;

/** Marks rows that nobody holds. */
async function markFree(sql: Sql, kind: keyof typeof ROWS, marks: Marks): Promise<void> {
  const { table, column } = ROWS[kind];
  await sql`
    with free as (
      select t.${sql(column)} as found, d.version from ${ofMarks(sql, kind, marks)}
      for no key update of t skip locked
    )
    update ${sql(table)} t set published_version = free.version from free where t.${sql(column)} = free.found`;
}

/** What somebody held while the others were marked: seldom any. */
function unmarked(sql: Sql, kind: keyof typeof ROWS, marks: Marks) {
  return sql<{ key: string; version: number }[]>`
    select d.key, d.version::float8 as version from ${ofMarks(sql, kind, marks)}`;
}

/** The rows `t` that still want the mark `d`. */
function ofMarks(sql: Sql, kind: keyof typeof ROWS, marks: Marks) {
  const { table, column, type } = ROWS[kind];
  return sql`
    unnest(${[...marks.keys()]}::text[], ${[...marks.values()]}::bigint[]) d (key, version)
    join ${sql(table)} t on t.${sql(column)} = d.key::${sql.unsafe(type)} and t.published_version < d.version`;
}

async function markOne(sql: Sql, kind: keyof typeof ROWS, key: string, version: number): Promise<void> {
  const { table, column, type } = ROWS[kind];
  await sql`
    update ${sql(table)} set published_version = ${version}
    where ${sql(column)} = ${key}::text::${sql.unsafe(type)} and published_version < ${version}`;
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
