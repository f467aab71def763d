/** Parts of statements that Drizzle lacks. They refer to columns of the schema, so that a renamed column is a type error. */
import type { Database } from './client.ts';
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

/** An expression, a column of another table, or a value that becomes a parameter. */
type Expression = SQLWrapper | string | number | boolean | null;
type ColumnsOf<Table extends PgTable> = Table['_']['columns'];

/** Returns a column's bare name, for `on conflict (…)` and `set … =`. */
export function nameOf(column: Column): SQL {
  return sql`${sql.identifier(column.name)}`;
}

/** Returns `insert into table (columns) select expressions`, without `from`. */
export function insertInto<Table extends PgTable>(
  table: Table,
  values: { readonly [Key in keyof ColumnsOf<Table>]?: Expression },
): SQL {
  const entries = entriesOf(table, values);
  const names = entries.map(([column]) => nameOf(column));
  const expressions = entries.map(([, expression]) => sql`${expression}`);
  return sql`insert into ${table} (${sql.join(names, sql`, `)}) select ${sql.join(expressions, sql`, `)}`;
}

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

/** Returns the statement for a table that ends with the connection. */
export function createTemporary(table: PgTable): SQL {
  const { columns } = getTableConfig(table);
  const definitions = columns.map(
    (column) =>
      sql`${nameOf(column)} ${sql.raw(column.getSQLType())}${sql.raw(column.notNull ? ' not null' : '')}`,
  );
  return sql`create temporary table ${table} (${sql.join(definitions, sql`, `)})`;
}

/** Returns a list as one parameter. Drizzle alone would make one parameter per element. */
export function array(
  values: readonly unknown[],
  type: 'text' | 'integer' | 'bigint' | 'numeric' | 'timestamptz',
): SQL {
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

/** Patterns of `to_char`: to the second, the millisecond and the microsecond. */
const PATTERNS = {
  s: `'YYYY-MM-DD"T"HH24:MI:SS"Z"'`,
  ms: `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`,
  us: `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`,
} as const;

type Precision = keyof typeof PATTERNS;

/** Returns SQL that writes an instant as RFC 3339 in UTC; null for null. @param time SQL, never input, e.g. `r.started_at` */
export function instantText(time: string, precision: Precision): string {
  return `to_char(${time} at time zone 'UTC', ${PATTERNS[precision]})`;
}

type InstantOf<Of> = Of extends { readonly _: { readonly notNull: true } } ? string : string | null;

/** Returns the same of an expression, as a part of a statement. */
export function rfc3339<Of extends SQLWrapper>(instant: Of, precision: Precision = 's'): SQL<InstantOf<Of>> {
  return sql<InstantOf<Of>>`to_char(${instant} at time zone 'UTC', ${sql.raw(PATTERNS[precision])})`;
}

export function increment(column: Column): SQL {
  return sql`${column} + 1`;
}

export function countIf(condition: SQLWrapper): SQL<number> {
  return sql<number>`(count(*) filter (where ${sql`${condition}`}))::int`;
}

/** The row type for `execute`, which rejects interfaces. */
export type RowOf<Shape> = { [Key in keyof Shape]: Shape[Key] };

/** Selects rows of a source that are not retired. */
export function notRetired(rows: Record<'sourceId' | 'retiredAt', Column>, sourceId: string): SQL {
  return sql`${rows.sourceId} = ${sourceId} and ${rows.retiredAt} is null`;
}

/** Selects the regions of a provider's catalogue, without those that only the clusters of an organization name. */
export function inCatalogue(rows: Record<'providerId' | 'organizationId', Column>, providerId: number): SQL {
  return sql`${rows.providerId} = ${providerId} and ${rows.organizationId} is null`;
}

/** Returns the row of a statement that always has one. */
export function only<Row>([row]: readonly Row[]): Row {
  if (row === undefined) throw new Error('unreachable: the statement returns a row');
  return row;
}

/** Runs steps in the current transaction, or in a new one. */
export function inTransaction<T>(db: Database, steps: (tx: Database) => Promise<T>): Promise<T> {
  return is(db, PgTransaction) ? steps(db) : db.transaction(steps);
}

export interface PageSearch<Sort> {
  readonly sort: Sort;
  readonly descending: boolean;
  readonly limit: number;
  readonly offset: number;
}

/** A page of a list for operators. */
export interface Page<Row> {
  readonly rows: readonly Row[];
  /** Rows on all pages. */
  readonly total: number;
}

/** Returns the SQL of an order. @param order SQL, with % for the direction of each expression */
export const directed = (order: string, descending: boolean): string =>
  order.replaceAll('%', descending ? 'desc' : 'asc');
