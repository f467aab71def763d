/** The rows of a database: written by one release, loaded into a database that has the release's migrations. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type postgres from 'postgres';
import { COPY_NULL, copyField } from '../../../src/db/connection/copy.ts';

export interface DatabaseRows {
  readonly tables: readonly {
    readonly name: string;
    readonly columns: readonly string[];
    /** Lines in PostgreSQL's text format of COPY. */
    readonly rows: readonly string[];
  }[];
  /** The last value of each sequence. */
  readonly sequences: readonly { readonly name: string; readonly last: string }[];
}

/** Reads all rows of the schema `public`, in an order that does not depend on their places on disk. */
export async function readRows(sql: postgres.Sql): Promise<DatabaseRows> {
  const found = await sql<{ name: string; columns: string[] }[]>`
    select c.table_name as name, array_agg(c.column_name::text order by c.ordinal_position) as columns
    from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
    where c.table_schema = 'public' and t.table_type = 'BASE TABLE' and c.is_generated = 'NEVER'
    group by 1 order by 1`;
  const tables: DatabaseRows['tables'][number][] = [];
  for (const { name, columns } of found) {
    const texts = columns.map((column) => `"${column}"::text`).join(', ');
    // Not COPY TO STDOUT: postgres.js 3.4 waits without end in one of about 1,000 of them.
    const rows = await sql.unsafe(`select ${texts} from "${name}" t order by t::text collate "C"`).values();
    tables.push({ name, columns, rows: rows.map(lineOf) });
  }
  const sequences = await sql<{ name: string; last: string }[]>`
    select sequencename as name, last_value::text as last from pg_sequences
    where schemaname = 'public' and last_value is not null order by 1`;
  return { tables, sequences: [...sequences] };
}

const lineOf = (fields: readonly (string | null)[]) =>
  fields.map((field) => (field === null ? COPY_NULL : copyField(field))).join('\t');

/**
 * Replaces all rows of a database. Triggers and references do not apply, because rows of a dump are complete. The lineage
 * begins in this database: a lineage of another database would be a restored backup, whose cache does not count.
 */
export async function loadRows(sql: postgres.Sql, rows: DatabaseRows): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx.unsafe(`truncate ${rows.tables.map(({ name }) => `"${name}"`).join(', ')}`);
    for (const { name, columns, rows: lines } of rows.tables) {
      const listed = columns.map((column) => `"${column}"`).join(', ');
      const into = await tx.unsafe(`copy "${name}" (${listed}) from stdin`).writable();
      await pipeline(Readable.from(lines.map((line) => `${line}\n`)), into);
    }
    for (const { name, last } of rows.sequences) await tx`select setval(${name}, ${last}::bigint)`;
    await tx`update lineage set database_identity = database_identity()`;
  });
}
