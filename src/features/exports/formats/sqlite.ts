import { DatabaseSync } from 'node:sqlite';
import type { Column, ColumnType } from '../columns.ts';
import type { ExportTable } from '../files.ts';
import type { TableWriter } from './table-writer.ts';

/** `user_version` of the files: rises with the columns. */
const SCHEMA_VERSION = 1;

const TYPES: Readonly<Record<ColumnType, string>> = {
  int32: 'integer',
  int64: 'integer',
  double: 'real',
  text: 'text',
  instant: 'text',
};

/** Rows come in the order of this key, so that pages are filled one after the other. */
const KEYS: Readonly<Record<ExportTable, readonly string[]>> = {
  machines: ['id'],
  prices: ['machine_id', 'valid_from'],
};
const INDEXES: Readonly<Record<ExportTable, readonly (readonly string[])[]>> = {
  machines: [['price'], ['provider_id', 'region_id']],
  prices: [],
};

/** A database of SQLite with the one table, strict, and its indexes. */
export function sqliteWriter(path: string, table: ExportTable, columns: readonly Column[]): TableWriter {
  const database = new DatabaseSync(path);
  const definitions = columns.map(
    ({ name, type, nullable }) => `${name} ${TYPES[type]}${nullable ? '' : ' not null'}`,
  );
  const key = `primary key (${KEYS[table].join(', ')})`;
  // One key of integers is the row's own number; another one has no need of a second number beside it.
  const options = KEYS[table].length === 1 ? 'strict' : 'strict, without rowid';
  // A file that is not finished is thrown away: there is nothing to roll back to, and nothing to flush.
  database.exec(`
    pragma journal_mode = off; pragma synchronous = off; pragma user_version = ${SCHEMA_VERSION};
    create table ${table} (${definitions.join(', ')}, ${key}) ${options};
    begin`);
  const insert = database.prepare(`insert into ${table} values (${columns.map(() => '?').join(', ')})`);
  return {
    write(rows) {
      for (const row of rows) insert.run(...row);
    },
    finish() {
      database.exec('commit');
      for (const each of INDEXES[table])
        database.exec(`create index ${table}_by_${each.join('_and_')} on ${table} (${each.join(', ')})`);
      database.exec('analyze');
      database.close();
    },
  };
}
