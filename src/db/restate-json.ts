/** Restates prices inside of JSON columns when the published currency changes. */
import type { StoredRegionPrice } from '../domain/prices/region-price.ts';
import type { StoredTerms } from '../domain/prices/term.ts';
import type { ConnectionDatabase } from './connection/connect.ts';
import { COPY_NULL, copyField, copyLines } from './connection/copy.ts';
import { type PgColumn, pgTable, type SQL, sql } from './connection/drizzle.ts';
import { nameOf, type RowOf } from './connection/statements.ts';
import { machines, machineTerms, regionPrices, regions } from './schema.ts';

/** Converts stored prices to the new currency. Amounts without an exchange rate are left out; null if none is left. */
export interface JsonConverter {
  terms(stored: StoredTerms): StoredTerms | null;
  regionPrices(stored: readonly StoredRegionPrice[]): readonly StoredRegionPrice[] | null;
}

export async function restateJson(db: ConnectionDatabase, convert: JsonConverter): Promise<void> {
  await restate(db, [machines.terms, machineTerms.terms], convert.terms, sql`'{"terms": {}}'`);
  await restate(db, [regions.prices, regionPrices.prices], convert.regionPrices, sql`'[]'`);
}

const restated = pgTable('restated_json', (c) => ({
  before: c.jsonb('before').notNull(),
  after: c.jsonb('after'),
}));

/** @param none the value of a history without any amount */
async function restate<T>(
  db: ConnectionDatabase,
  columns: readonly [current: PgColumn, history: PgColumn],
  convert: (stored: T) => T | null,
  none: SQL,
): Promise<void> {
  const stored = await db.execute<RowOf<{ text: string }>>(
    sql.join(
      columns.map(
        (column) => sql`select ${column}::text as text from ${column.table} where ${column} is not null`,
      ),
      sql` union `,
    ),
  );
  if (stored.length === 0) return;
  await copyLines(db, restated, lines(stored, convert));
  const { before, after } = restated;
  for (const column of columns) {
    const value = column.notNull ? sql`coalesce(${after}, ${none})` : after;
    await db.execute(sql`
      update ${column.table} set ${nameOf(column)} = ${value} from ${restated} where ${column} = ${before}`);
  }
  await db.execute(sql`drop table ${restated}`);
}

async function* lines<T>(
  stored: readonly { readonly text: string }[],
  convert: (stored: T) => T | null,
): AsyncGenerator<string> {
  for (const { text } of stored) {
    const after = convert(JSON.parse(text));
    yield `${copyField(text)}\t${after === null ? COPY_NULL : copyField(JSON.stringify(after))}\n`;
  }
}
