/** The versions of documents: what was published, and what is ahead of that. */
import { type DocumentName, type RowName, rowName } from '../domain/document-name.ts';
import type { Database } from './connection/connect.ts';
import { eq, isNull, lt, type SQL, sql } from './connection/drizzle.ts';
import { array, nameOf } from './connection/statements.ts';
import { lineage, organizations, regions, tokens } from './schema.ts';

export interface VersionedDocument {
  readonly name: RowName;
  readonly version: number;
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
export async function* allVersions(db: Database, batchSize: number): AsyncGenerator<VersionedDocument[]> {
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

function documentOf({ kind, id, hash, version }: DocumentRow): VersionedDocument {
  const names: Record<RowName['kind'], RowName> = {
    token: { kind: 'token', hash: hash ?? '' },
    clusters: { kind: 'clusters', organizationId: id },
    region: { kind: 'region', regionId: id },
    providers: { kind: 'providers' },
  };
  return { name: names[kind], version: Number(version) };
}

export interface SampledDocument extends VersionedDocument {
  /** The cache has, or has had, this version. */
  readonly publishedVersion: number;
}

/** The ids between which the documents of a kind lie. */
interface Range {
  readonly kind: ManyKind;
  readonly first: number;
  readonly last: number;
}

/** Nobody reads what a deleted organization had. */
const IS_READ = {
  token: sql`true`,
  clusters: isNull(organizations.deletedAt),
  region: sql`true`,
};

/**
 * Up to `size` random documents: the list of providers, and regions, organizations and tokens in proportion to how many
 * there are, at least one of each. Fewer where two random ids lead to the same document. It costs a few lookups in
 * indexes, however many documents there are.
 * @param random as Math.random
 */
export async function sampleVersions(
  db: Database,
  size: number,
  random: () => number,
): Promise<SampledDocument[]> {
  const found: SampledDocument[] = [];
  for (const { range, count } of shares(await ranges(db), size - 1)) {
    const places = Array.from({ length: count }, (_, i) =>
      // Where there is room for all, nothing is left to chance.
      count === reach(range) ? range.first + i : range.first + Math.floor(random() * reach(range)),
    );
    found.push(...(await nearest(db, range.kind, places)));
  }
  return [...found, ...(await documentVersions(db, [{ kind: 'providers' }]))];
}

/** The versions now of the rows that count these documents' versions; those that are gone are left out. */
export async function documentVersions(
  db: Database,
  documents: readonly DocumentName[],
): Promise<SampledDocument[]> {
  const names = documents.map(rowName);
  const rows = KINDS.map((kind) => {
    const { key, keyType } = DOCUMENTS[kind];
    const keys = names.flatMap((name) => (name.kind === kind ? [keyOf(name)] : []));
    const wanted = sql`${key} = any(array(select k::${keyType} from unnest(${array(keys, 'text')}) k))`;
    return documentRows(kind, sql`${wanted} and ${IS_READ[kind]}`);
  });
  const isWanted = names.some(({ kind }) => kind === 'providers');
  return sampled(db, sql`${sql.join(rows, sql` union all `)} union all ${PROVIDERS_ROW} where ${isWanted}`);
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

async function ranges(db: Database): Promise<Range[]> {
  const each = KINDS.map((kind) => {
    const { table, id, isDocument } = DOCUMENTS[kind];
    return sql`select ${kind}::text as kind, min(${id}) as first, max(${id}) as last from ${table}
      where ${isDocument} and ${IS_READ[kind]}`;
  });
  const rows = await db.execute<{ kind: ManyKind; first: number | null; last: number | null }>(
    sql.join(each, sql` union all `),
  );
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

/** The document at each place, or the first one after it. */
function nearest(db: Database, kind: ManyKind, places: readonly number[]): Promise<SampledDocument[]> {
  const { id } = DOCUMENTS[kind];
  const first = documentRows(kind, sql`${id} >= p.place and ${IS_READ[kind]} order by ${id} limit 1`);
  return sampled(
    db,
    sql`select distinct d.* from unnest(${array(places, 'integer')}) p (place) cross join lateral (${first}) d`,
  );
}

async function sampled(db: Database, rows: SQL): Promise<SampledDocument[]> {
  const found = await db.execute<DocumentRow>(rows);
  return found.map((row) => ({ ...documentOf(row), publishedVersion: Number(row.published) }));
}
