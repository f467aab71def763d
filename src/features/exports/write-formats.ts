/** Writers of the file formats. They block. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { fileWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import { csvLine } from './csv.ts';
import { type Column, type ColumnType, type ExportTable, keyOf, type Row } from './tables.ts';

/** Writes one table into one file. It blocks, so it runs in its own thread. */
export interface TableWriter {
  write(rows: readonly Row[]): void;
  finish(): void;
}

/**
 * CSV by RFC 4180: a header, lines that end in CRLF, UTF-8 without a byte order mark. A null is an empty field, an empty
 * text is `""`. An apostrophe precedes each formula of a spreadsheet. Numbers do not change.
 */
export function csvWriter(path: string, columns: readonly Column[]): TableWriter {
  return lineWriter(path, csvLine(columns.map(({ name }) => name)), csvLine);
}

/** One JSON object a line, with every column by name. */
export function ndjsonWriter(path: string, columns: readonly Column[]): TableWriter {
  const keys = columns.map(({ name }, index) => `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`);
  return lineWriter(path, '', (row) => {
    let line = '';
    for (const [index, key] of keys.entries()) line += key + JSON.stringify(row[index]);
    return `${line}}\n`;
  });
}

function lineWriter(path: string, head: string, lineOf: (row: Row) => string): TableWriter {
  const file = openSync(path, 'wx');
  const write = (text: string) => {
    const bytes = Buffer.from(text);
    // One call may write only some of the bytes.
    for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
  };
  write(head);
  return {
    write: (rows) => write(rows.map(lineOf).join('')),
    finish: () => closeSync(file),
  };
}

/** Rows of a group, which memory holds until it is written. Clients skip whole groups by their statistics. */
const ROWS_OF_GROUP = 50_000;

const PARQUET_TYPES: Readonly<
  Record<ColumnType, Pick<SchemaElement, 'type' | 'converted_type' | 'logical_type'>>
> = {
  int32: { type: 'INT32' },
  int64: { type: 'INT64' },
  double: { type: 'DOUBLE' },
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  instant: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
};

/** Apache Parquet with Snappy, one row group at a time. @param metadata for the footer */
export function parquetWriter(
  path: string,
  columns: readonly Column[],
  metadata: Readonly<Record<string, string>>,
): TableWriter {
  const writer = new ParquetWriter({
    writer: fileWriter(path),
    schema: [
      { name: 'root', num_children: columns.length },
      ...columns.map(
        ({ name, type, nullable }): SchemaElement => ({
          name,
          repetition_type: nullable ? 'OPTIONAL' : 'REQUIRED',
          ...PARQUET_TYPES[type],
        }),
      ),
    ],
    kvMetadata: Object.entries(metadata).map(([key, value]) => ({ key, value })),
    createdBy: 'fleetbook',
  });
  let group: Row[] = [];
  const flush = () => {
    if (group.length === 0) return;
    const columnData = columns.map(({ name, type }, index) => ({
      name,
      data: group.map((row) => encode(type, row[index] ?? null)),
    }));
    // `write` and `finish` are done when they return: a file writer does not wait.
    void writer.write({ columnData, rowGroupSize: group.length });
    group = [];
  };
  return {
    write(rows) {
      for (const row of rows) if (group.push(row) === ROWS_OF_GROUP) flush();
    },
    finish() {
      flush();
      void writer.finish();
    },
  };
}

function encode(type: ColumnType, value: Row[number]): unknown {
  if (value === null) return null;
  if (type === 'int64') return BigInt(value);
  return type === 'instant' ? microseconds(String(value)) : value;
}

/** Returns the microseconds from 1970 to an instant. A Date would drop its last three digits. */
function microseconds(instant: string): bigint {
  return BigInt(Date.parse(`${instant.slice(0, 19)}Z`)) * 1000n + BigInt(instant.slice(20, 26));
}

/** `user_version` of the files. Raise it with new columns. */
const SCHEMA_VERSION = 1;

const SQLITE_TYPES: Readonly<Record<ColumnType, string>> = {
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
    ({ name, type, nullable }) => `${name} ${SQLITE_TYPES[type]}${nullable ? '' : ' not null'}`,
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
