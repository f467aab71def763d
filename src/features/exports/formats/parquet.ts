import { fileWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import type { Column, ColumnType, Row, TableWriter } from '../tables.ts';

/** Rows of a group, which memory holds until it is written. Clients skip whole groups by their statistics. */
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
          ...TYPES[type],
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
