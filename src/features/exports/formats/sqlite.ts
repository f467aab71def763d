import { DatabaseSync } from 'node:sqlite';
import type { ExportTable } from '../files.ts';
import { type Column, type ColumnType, keyOf, type TableWriter } from '../tables.ts';

/** `user_version` of the files. Raise it with new columns. */
const SCHEMA_VERSION = 1;

const TYPES: Readonly<Record<ColumnType, string>> = {
  int32: 'integer',
  int64: 'integer',
  double: 'real',
  text: 'text',
  instant: 'text',
};

const INDEXES: { readonly [T in ExportTable]?: readonly (readonly string[])[] } = {
  machines: [['list_price'], ['provider_id', 'region_id']],
};

export function sqliteWriter(path: string, table: ExportTable, columns: readonly Column[]): TableWriter {
  const database = new DatabaseSync(path);
  const definitions = columns.map(
    ({ name, type, nullable }) => `${name} ${TYPES[type]}${nullable ? '' : ' not null'}`,
  );
  const key = keyOf(table);
  // An integer key is the row id itself. For another key a row id would only take room.
  const options = key.length === 1 ? 'strict' : 'strict, without rowid';
  // An unfinished file is removed, so a rollback journal and flushes are of no use.
  database.exec(`
    pragma journal_mode = off; pragma synchronous = off; pragma user_version = ${SCHEMA_VERSION};
    create table ${table} (${definitions.join(', ')}, primary key (${key.join(', ')})) ${options};
    begin`);
  const insert = database.prepare(`insert into ${table} values (${columns.map(() => '?').join(', ')})`);
  return {
    write(rows) {
      for (const row of rows) insert.run(...row);
    },
    finish() {
      database.exec('commit');
      for (const each of INDEXES[table] ?? [])
        database.exec(`create index ${table}_by_${each.join('_and_')} on ${table} (${each.join(', ')})`);
      database.exec('analyze');
      database.close();
    },
  };
}
