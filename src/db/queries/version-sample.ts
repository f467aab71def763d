/** What the comparison of cache and database needs: random documents, and a new version of one that was damaged. */

import { type DocumentName, type RowName, rowName } from '../../domain/document-name.ts';
import type { Database } from '../connect.ts';
import { eq, isNull, type SQL, sql } from '../drizzle.ts';
import { lineage, organizations } from '../schema.ts';
import { array, nameOf } from '../statements.ts';
import {
  DOCUMENTS,
  type DocumentRow,
  documentOf,
  documentRows,
  KINDS,
  keyOf,
  type ManyKind,
  PROVIDERS_ROW,
  type VersionedDocument,
} from './versions.ts';

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
