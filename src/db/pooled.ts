/** Statements through a pooler in transaction mode: each is a transaction of its own, which begins with its settings. */
import type postgres from 'postgres';

type Transaction = postgres.TransactionSql<Record<string, never>>;

/** A statement of postgres.js, as far as it is used here. */
interface Query extends Promise<unknown> {
  readonly strings: TemplateStringsArray | readonly string[];
  readonly args: never[];
  readonly tagged: boolean;
  options: object;
  isRaw?: boolean | 'values';
  active: boolean;
  cursorFn?: (rows: unknown) => unknown;
  readonly cursorRows?: number;
  handler: (query: Query) => void;
  resolve(result?: unknown): void;
  reject(error: unknown): void;
}

/** Fragments are such statements too; nobody executes them. */
export function isQuery<T>(value: T): value is T & Query {
  return value instanceof Promise && 'reject' in value && 'handler' in value;
}

/** Parameters of a connection that every pooler keeps apart for its clients. */
const KEPT = ['application_name', 'TimeZone'];

/** What a connection may begin with, and what each transaction has to begin with instead. */
export function forPooler(given: object = {}) {
  const entries = Object.entries(given);
  return {
    connection: Object.fromEntries(entries.filter(([name]) => KEPT.includes(name))),
    // Not by `select set_config`: a transaction's isolation may be set only before its first query.
    local:
      entries
        .filter(([name]) => !KEPT.includes(name))
        .map(([name, value]) => `set local ${name} ${name === 'role' ? '' : '= '}'${value}'`)
        .join('; ') || 'select',
  };
}

/** Has the statement executed in a transaction. A cursor gives the rows in the same parts, and has read all of them. */
export function executeIn(
  query: Query,
  begin: (steps: (transaction: Transaction) => unknown) => Promise<unknown>,
): void {
  query.handler = () => {
    query.active = true;
    begin((transaction) => {
      const own = query.tagged
        ? transaction(query.strings as TemplateStringsArray, ...query.args)
        : transaction.unsafe(query.strings[0] ?? '', query.args);
      const { isRaw, options } = query;
      Object.assign(own, { isRaw, options });
      return [own];
    }).then(
      (results) => answer(query, (results as unknown[][])[0] ?? []),
      (error: unknown) => query.reject(error),
    );
  };
}

async function answer(query: Query, rows: unknown[]): Promise<void> {
  const { cursorRows = 1 } = query;
  if (!query.cursorFn) return query.resolve(rows);
  for (let from = 0; from < rows.length; from += cursorRows) {
    // It answers when the next part is wanted, and with an object when none is.
    if ((await query.cursorFn(rows.slice(from, from + cursorRows))) !== undefined) break;
  }
  query.resolve();
}
