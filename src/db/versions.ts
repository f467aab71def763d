/** Versions of documents, in PostgreSQL and as published. A document is dirty while its published version is lower. */
import { type DocumentName, type RowName, rowName } from '../domain/document-name.ts';
import type { Database } from './connection/client.ts';
import { and, type Column, eq, isNull, lt, type SQL, sql } from './connection/drizzle.ts';
import { array, increment, nameOf } from './connection/statements.ts';
import { lineage, organizations, regions, tokens } from './schema.ts';

export interface VersionedDocument {
  readonly name: RowName;
  readonly version: number;
}

export interface StoredVersion extends VersionedDocument {
  readonly publishedVersion: number;
}

export type ManyKind = Exclude<RowName['kind'], 'providers'>;

const byId = <T extends typeof organizations | typeof regions>(table: T) => ({
  table,
  id: table.id,
  key: table.id,
  published: table.publishedVersion,
  keyType: sql`integer`,
  hash: sql`null`,
});

const DOCUMENTS = {
  token: {
    table: tokens,
    id: tokens.id,
    /** The column in the document's name, and its type. */
    key: tokens.hash,
    keyType: sql`bytea`,
    hash: sql`encode(${tokens.hash}, 'hex')`,
    version: tokens.version,
    published: tokens.publishedVersion,
    isDocument: sql`true`,
  },
  clusters: { ...byId(organizations), version: organizations.clustersVersion, isDocument: sql`true` },
  region: { ...byId(regions), version: regions.version, isDocument: sql`${regions.organizationId} is null` },
} as const;

const raise = (column: Column) => sql`update ${column.table} set ${nameOf(column)} = ${increment(column)}`;

/** Statements that raise versions, without `where`. */
export const RAISE = {
  region: raise(regions.version),
  clusters: raise(organizations.clustersVersion),
  providers: raise(lineage.providersVersion),
};

const KINDS = ['token', 'clusters', 'region'] as const satisfies readonly ManyKind[];

export type DocumentRow = {
  readonly kind: RowName['kind'];
  readonly id: number;
  readonly hash: string | null;
  readonly version: string;
  readonly published: string;
};

/** Selects `DocumentRow`s of a kind. @param condition may end with `order by` and `limit` */
function documentRows(kind: ManyKind, condition: SQL): SQL {
  const { table, id, hash, version, published, isDocument } = DOCUMENTS[kind];
  return sql`select ${kind}::text as kind, ${id} as id, ${hash}::text as hash, ${version} as version,
    ${published} as published from ${table} where ${isDocument} and ${condition}`;
}

const PROVIDERS_ROW = sql`select 'providers' as kind, 0 as id, null as hash,
  ${lineage.providersVersion} as version, ${lineage.providersPublishedVersion} as published from ${lineage}`;

function keyOf(name: Exclude<RowName, { kind: 'providers' }>): string {
  if (name.kind === 'token') return `\\x${name.hash}`;
  return String(name.kind === 'clusters' ? name.organizationId : name.regionId);
}

/**
 * Returns up to `limit` dirty documents. Tokens come first, since a revocation must not wait behind a catalogue. The list of
 * providers comes last, so that it names no region before the region is readable.
 */
export async function dirtyDocuments(db: Database, limit: number): Promise<VersionedDocument[]> {
  const dirty = KINDS.map((kind, rank) => {
    const { version, published } = DOCUMENTS[kind];
    const rows = documentRows(kind, sql`${published} < ${version} limit ${limit}`);
    return sql`select ${rank}::integer as rank, * from (${rows}) ${sql.identifier(kind)}`;
  });
  const rows = await db.execute<DocumentRow>(sql`
    select * from (
      ${sql.join(dirty, sql` union all `)}
      union all
      select ${KINDS.length}::integer, * from (
        ${PROVIDERS_ROW} where ${lineage.providersPublishedVersion} < ${lineage.providersVersion}) providers
    ) dirty order by rank, id limit ${limit}`);
  return rows.map(documentOf);
}

/** Yields all documents. @param pageSize largest number of documents at a time */
export async function* allVersions(db: Database, pageSize: number): AsyncGenerator<StoredVersion[]> {
  for (const kind of KINDS) {
    const { id } = DOCUMENTS[kind];
    for (let after = 0; ; ) {
      const page = documentRows(kind, sql`${id} > ${after} order by ${id} limit ${pageSize}`);
      const rows = await db.execute<DocumentRow>(page);
      if (rows.length > 0) yield rows.map(documentOf);
      const last = rows.at(-1);
      if (last === undefined || rows.length < pageSize) break;
      after = last.id;
    }
  }
  yield (await db.execute<DocumentRow>(PROVIDERS_ROW)).map(documentOf);
}

/**
 * Records the versions that the cache holds. Published versions never go down. It never locks a row while it waits for another
 * one, which a sync or a second publisher may hold: that would be a deadlock.
 */
export async function markPublished(db: Database, documents: readonly VersionedDocument[]): Promise<void> {
  const marks: Record<ManyKind, Map<string, number>> = {
    token: new Map(),
    clusters: new Map(),
    region: new Map(),
  };
  let providers: number | undefined;
  for (const { name, version } of documents) {
    if (name.kind === 'providers') providers = version;
    else marks[name.kind].set(keyOf(name), version);
  }
  for (const kind of KINDS) {
    if (marks[kind].size > 0) await markRows(db, kind, marks[kind]);
  }
  if (providers !== undefined) {
    await db
      .update(lineage)
      .set({ providersPublishedVersion: providers })
      .where(lt(lineage.providersPublishedVersion, providers));
  }
}

/** Updates the unlocked rows at once, then the locked ones, usually none, one by one. */
async function markRows(db: Database, kind: ManyKind, marks: ReadonlyMap<string, number>): Promise<void> {
  const { table, key, keyType, published } = DOCUMENTS[kind];
  const wanted = sql`
    unnest(${array([...marks.keys()], 'text')}, ${array([...marks.values()], 'bigint')}) d (key, version)
    join ${table} on ${key} = d.key::${keyType} and ${published} < d.version`;
  await db.execute(sql`
    with free as (
      select ${key} as found, d.version from ${wanted} for no key update of ${table} skip locked
    )
    update ${table} set ${nameOf(published)} = free.version from free where ${key} = free.found`);
  const left = await db.execute<{ key: string; version: string }>(
    sql`select d.key, d.version from ${wanted}`,
  );
  for (const mark of left) {
    await db.execute(sql`
      update ${table} set ${nameOf(published)} = ${mark.version}
      where ${key} = ${mark.key}::text::${keyType} and ${published} < ${mark.version}`);
  }
}

function documentOf({ kind, id, hash, version, published }: DocumentRow): StoredVersion {
  const names: Record<RowName['kind'], RowName> = {
    token: { kind: 'token', hash: hash ?? '' },
    clusters: { kind: 'clusters', organizationId: id },
    region: { kind: 'region', regionId: id },
    providers: { kind: 'providers' },
  };
  return { name: names[kind], version: Number(version), publishedVersion: Number(published) };
}

export async function documentVersions(
  db: Database,
  documents: readonly DocumentName[],
): Promise<StoredVersion[]> {
  const names = documents.map(rowName);
  const rows = KINDS.map((kind) => {
    const { key, keyType } = DOCUMENTS[kind];
    const keys = names.flatMap((name) => (name.kind === kind ? [keyOf(name)] : []));
    const wanted = sql`${key} = any(array(select k::${keyType} from unnest(${array(keys, 'text')}) k))`;
    return documentRows(kind, wanted);
  });
  const isWanted = names.some(({ kind }) => kind === 'providers');
  const all = sql`${sql.join(rows, sql` union all `)} union all ${PROVIDERS_ROW} where ${isWanted}`;
  return (await db.execute<DocumentRow>(all)).map(documentOf);
}

/**
 * Raises a document's version, so that it is published again and replaces the cached one. Does nothing if the version is not
 * `expected` any more: a newer version is published anyway.
 */
export async function raiseVersion(db: Database, document: DocumentName, expected: number): Promise<void> {
  const name: RowName = rowName(document);
  if (name.kind === 'providers') {
    await db
      .update(lineage)
      .set({ providersVersion: expected + 1 })
      .where(eq(lineage.providersVersion, expected));
    return;
  }
  const { table, key, keyType, version } = DOCUMENTS[name.kind];
  await db.execute(sql`
    update ${table} set ${nameOf(version)} = ${expected + 1}
    where ${key} = ${keyOf(name)}::text::${keyType} and ${version} = ${expected}`);
}

export async function dirtyDocumentCounts(db: Database): Promise<Readonly<Record<RowName['kind'], number>>> {
  const { publishedVersion, clustersVersion } = organizations;
  const { providersVersion, providersPublishedVersion } = lineage;
  const [token, clusters, region, providers] = await Promise.all([
    db.$count(tokens, lt(tokens.publishedVersion, tokens.version)),
    db.$count(organizations, lt(publishedVersion, clustersVersion)),
    db.$count(regions, and(lt(regions.publishedVersion, regions.version), isNull(regions.organizationId))),
    db.$count(lineage, lt(providersPublishedVersion, providersVersion)),
  ]);
  return { token, clusters, region, providers };
}
