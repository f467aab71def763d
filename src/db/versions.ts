/** The versions of documents: what was published, and what is ahead of that. */
import { type DocumentName, type RowName, rowName } from '../domain/document-name.ts';
import type { Database } from './connection/connect.ts';
import { eq, lt, type SQL, sql } from './connection/drizzle.ts';
import { array, nameOf } from './connection/statements.ts';
import { lineage, organizations, regions, tokens } from './schema.ts';

export interface VersionedDocument {
  readonly name: RowName;
  readonly version: number;
}

export interface StoredVersion extends VersionedDocument {
  /** The newest version that the cache has had. */
  readonly publishedVersion: number;
}

/** Kinds of which there are many. */
export type ManyKind = Exclude<RowName['kind'], 'providers'>;

/** Where the versions of documents stand, by kind; tokens first, since a revocation must not wait behind a catalogue. */
const DOCUMENTS = {
  token: {
    table: tokens,
    id: tokens.id,
    /** What the document's name has of the row, and as which type. */
    key: tokens.hash,
    keyType: sql`bytea`,
    hash: sql`encode(${tokens.hash}, 'hex')`,
    version: tokens.version,
    published: tokens.publishedVersion,
    /** Rows that are documents. */
    isDocument: sql`true`,
  },
  clusters: {
    table: organizations,
    id: organizations.id,
    key: organizations.id,
    keyType: sql`integer`,
    hash: sql`null`,
    version: organizations.clustersVersion,
    published: organizations.publishedVersion,
    isDocument: sql`true`,
  },
  region: {
    table: regions,
    id: regions.id,
    key: regions.id,
    keyType: sql`integer`,
    hash: sql`null`,
    version: regions.version,
    published: regions.publishedVersion,
    isDocument: sql`${regions.organizationId} is null`,
  },
} as const;

const KINDS = ['token', 'clusters', 'region'] as const satisfies readonly ManyKind[];

export type DocumentRow = {
  readonly kind: RowName['kind'];
  readonly id: number;
  readonly hash: string | null;
  readonly version: string;
  readonly published: string;
};

/** The documents of a kind as `DocumentRow`s. @param condition and what may follow it */
function documentRows(kind: ManyKind, condition: SQL): SQL {
  const { table, id, hash, version, published, isDocument } = DOCUMENTS[kind];
  return sql`select ${kind}::text as kind, ${id} as id, ${hash}::text as hash, ${version} as version,
    ${published} as published from ${table} where ${isDocument} and ${condition}`;
}

/** The list of providers as a `DocumentRow`. */
const PROVIDERS_ROW = sql`select 'providers' as kind, 0 as id, null as hash,
  ${lineage.providersVersion} as version, ${lineage.providersPublishedVersion} as published from ${lineage}`;

/** The document's key among those of its kind, as text. */
function keyOf(name: Exclude<RowName, { kind: 'providers' }>): string {
  if (name.kind === 'token') return `\\x${name.hash}`;
  return String(name.kind === 'clusters' ? name.organizationId : name.regionId);
}

/**
 * Up to `limit` documents that are ahead of what was published. Tokens come first, since a revocation must not wait
 * behind a catalogue; the list of providers comes last, so that no region is listed before it can be read.
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

/** Every document there is, in batches of at most `batchSize`. */
export async function* allVersions(db: Database, batchSize: number): AsyncGenerator<StoredVersion[]> {
  for (const kind of KINDS) {
    const { id } = DOCUMENTS[kind];
    for (let after = 0; ; ) {
      const page = documentRows(kind, sql`${id} > ${after} order by ${id} limit ${batchSize}`);
      const rows = await db.execute<DocumentRow>(page);
      if (rows.length > 0) yield rows.map(documentOf);
      const last = rows.at(-1);
      if (last === undefined || rows.length < batchSize) break;
      after = last.id;
    }
  }
  yield (await db.execute<DocumentRow>(PROVIDERS_ROW)).map(documentOf);
}

/**
 * Records that the cache holds these versions; never takes a later record back. It never holds a row while it waits for
 * another one, which a sync or a second publisher may have: they would wait for each other.
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

/** Marks the rows that nobody holds, and then, each on its own, those that somebody held: seldom any. */
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

/** The versions now of the rows that count these documents' versions; those that are gone are left out. */
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
 * Makes the document dirty under the next version, so that it passes the fence and every reader takes it up. Nothing
 * happens where the version is not `expected` any more: what is newer is published anyway.
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
