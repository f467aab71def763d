/**
 * Set-based statements by the schema's own tables and columns, so that a renamed column is a type error. Drizzle's query
 * builder has an `update … from`, but neither an insert of some columns from a select nor a `create table as`.
 */

import type { Sql } from './client.ts';
import type { Database } from './database.ts';
import {
  type Column,
  getTableColumns,
  getTableConfig,
  is,
  type PgTable,
  PgTransaction,
  type SQL,
  type SQLWrapper,
  sql,
} from './drizzle.ts';

/** What a column gets: an expression, a column of another table, or a value that becomes a parameter. */
type Expression = SQLWrapper | string | number | boolean | null;
type ColumnsOf<Table extends PgTable> = Table['_']['columns'];

/** A column's bare name: what stands in the column list of `on conflict` and left of `=`. */
export function nameOf(column: Column): SQL {
  return sql`${sql.identifier(column.name)}`;
}

/** `insert into table (columns) select expressions`; what follows says from where. */
export function insertInto<Table extends PgTable>(
  table: Table,
  values: { readonly [Key in keyof ColumnsOf<Table>]?: Expression },
): SQL {
  const entries = entriesOf(table, values);
  const names = entries.map(([column]) => nameOf(column));
  const expressions = entries.map(([, expression]) => sql`${expression}`);
  return sql`insert into ${table} (${sql.join(names, sql`, `)}) select ${sql.join(expressions, sql`, `)}`;
}

/** `select expression as column, …` for every column of a table, e.g. of a temporary one that is made of it. */
export function selectAs<Table extends PgTable>(
  table: Table,
  values: { readonly [Key in keyof ColumnsOf<Table>]: Expression },
): SQL {
  const entries = entriesOf(table, values);
  return sql`select ${sql.join(
    entries.map(([column, expression]) => sql`${expression} as ${nameOf(column)}`),
    sql`, `,
  )}`;
}

/** `create temporary table` with the columns that the declaration has. It goes with the session, or with the transaction. */
export function createTemporary(table: PgTable, ends: 'session' | 'transaction'): SQL {
  const { columns } = getTableConfig(table);
  const definitions = columns.map(
    (column) =>
      sql`${nameOf(column)} ${sql.raw(column.getSQLType())}${sql.raw(column.notNull ? ' not null' : '')}`,
  );
  const end = sql.raw(ends === 'transaction' ? ' on commit drop' : '');
  return sql`create temporary table ${table} (${sql.join(definitions, sql`, `)})${end}`;
}

/** A list as one parameter: `sql.param` would write an array out, a parameter for each element. */
export function array(values: readonly unknown[], type: 'text' | 'integer' | 'bigint' | 'numeric'): SQL {
  return sql`${sql.param([...values])}::${sql.raw(type)}[]`;
}

function entriesOf<Table extends PgTable>(
  table: Table,
  values: { readonly [Key in keyof ColumnsOf<Table>]?: Expression },
): (readonly [Column, Expression])[] {
  const columns: Readonly<Record<string, Column>> = getTableColumns(table);
  return Object.entries<Expression | undefined>(values).flatMap(([key, expression]) => {
    const column = columns[key];
    return column === undefined || expression === undefined ? [] : [[column, expression] as const];
  });
}

/** An instant as RFC 3339, to the second; null for null. */
export function rfc3339(instant: SQLWrapper): SQL<string | null> {
  return sql<string | null>`to_char(${instant} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
}

/** The same for a statement of postgres.js. @param column e.g. `r.started_at` */
export function instant(sql: Sql, column: string) {
  return sql`to_char(${sql(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
}

/** The next number, e.g. of a version that rises. */
export function increment(column: Column): SQL {
  return sql`${column} + 1`;
}

/** How many rows meet a condition, beside other aggregates. `db.$count` counts rows on their own. */
export function countIf(condition: SQLWrapper): SQL<number> {
  return sql<number>`(count(*) filter (where ${sql`${condition}`}))::int`;
}

/** The shape of a row that `execute` gives, which must not be an interface. */
export type RowOf<Shape> = { [Key in keyof Shape]: Shape[Key] };

/** Rows that a source has brought and that are not retired. */
export function notRetired(rows: Record<'sourceId' | 'retiredAt', Column>, sourceId: string): SQL {
  return sql`${rows.sourceId} = ${sourceId} and ${rows.retiredAt} is null`;
}

/** Carries out steps in one transaction: the one that is under way, where there is one. */
export function inTransaction<T>(db: Database, steps: (tx: Database) => Promise<T>): Promise<T> {
  return is(db, PgTransaction) ? steps(db) : db.transaction(steps);
}
