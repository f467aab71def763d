/** Pages of lists for operators, in the order of a sort key. */
import type { Sql } from './client.ts';

export interface PageSearch<Sort> {
  readonly sort: Sort;
  readonly descending: boolean;
  readonly limit: number;
  readonly offset: number;
}

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** Rows on all pages. */
  readonly total: number;
}

/** Returns an order by. @param order SQL, with % for the direction of each expression */
export const inOrder = (sql: Sql, order: string, descending: boolean) =>
  sql.unsafe(order.replaceAll('%', descending ? 'desc' : 'asc'));
