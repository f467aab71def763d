import { closeSync, openSync } from 'node:fs';
import { ByteWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import type { Column, ColumnType, Row } from '../columns.ts';
import type { TableWriter } from './table-writer.ts';
import { write } from './text-file.ts';

/** Rows that are kept in memory until they are written: readers skip a whole group by its statistics. */
const ROWS_OF_GROUP = 50_000;

const TYPES: Readonly<Record<ColumnType, Pick<SchemaElement, 'type' | 'converted_type' | 'logical_type'>>> = {
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

/**
 * Apache Parquet with Snappy, a row group at a time. Instants are timestamps in UTC, in microseconds.
 * @param metadata is kept in the file's footer
 */
export function parquetWriter(
  path: string,
  columns: readonly Column[],
  metadata: Readonly<Record<string, string>>,
): TableWriter {
  const file = openSync(path, 'wx');
  const writer = new ParquetWriter({
    writer: new FileBytes(file),
    schema: [
      { name: 'root', num_children: columns.length },
      ...columns.map(
        ({ name, type, nullable }): SchemaElement => ({
          name,
          repetition_type: nullable ? 'OPTIONAL' : 'REQUIRED',
          ...TYPES[type],
        }),
      ),
    ],
    kvMetadata: Object.entries(metadata).map(([key, value]) => ({ key, value })),
    createdBy: 'fleetbook',
  });
  const convert = columns.map(({ type }) => converterOf(type));
  let group = columns.map((): unknown[] => []);
  const flush = () => {
    const size = group[0]?.length ?? 0;
    if (size === 0) return;
    const columnData = columns.map(({ name }, index) => ({ name, data: group[index] ?? [] }));
    // Done when it returns, and so is `finish`: what it writes to does not wait.
    void writer.write({ columnData, rowGroupSize: size });
    group = columns.map(() => []);
  };
  return {
    write(rows) {
      for (const row of rows) {
        for (const [index, values] of group.entries()) values.push(convert[index]?.(row[index] ?? null));
        if (group[0]?.length === ROWS_OF_GROUP) flush();
      }
    },
    finish() {
      flush();
      void writer.finish();
      closeSync(file);
    },
  };
}

function converterOf(type: ColumnType): (value: Row[number]) => unknown {
  if (type === 'int64') return (value) => (value === null ? null : BigInt(value));
  return type === 'instant'
    ? (value) => (value === null ? null : microseconds(String(value)))
    : (value) => value;
}

/** Of an instant with six fractional digits, since 1970. A Date would drop the last three of them. */
function microseconds(instant: string): bigint {
  return BigInt(Date.parse(`${instant.slice(0, 19)}Z`)) * 1000n + BigInt(instant.slice(20, 26));
}

/** Goes into the file after each row group. */
class FileBytes extends ByteWriter {
  readonly #file: number;

  constructor(file: number) {
    super(1 << 20);
    this.#file = file;
  }

  flush(): void {
    write(this.#file, this.getBytes());
    this.index = 0;
  }

  override finish(): void {
    this.flush();
  }
}
