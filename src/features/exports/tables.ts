/**
 * The exported files and tables: one list of columns for SQL and every file format. A new column comes last. No column is
 * removed, and no column changes its type.
 */

import { instantText } from '../../db/connection/statements.ts';
import { IS_PUBLISHED_OR_SOLD_OUT } from '../../db/published-rows.ts';
import type { exports } from '../../db/schema.ts';
import { CONTINENTS, COUNTRIES_OF } from '../../domain/region-country.ts';

export const EXPORT_FORMATS = ['ndjson', 'csv', 'parquet', 'sqlite'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** The formats of each table. */
export const FORMATS_OF = {
  machines: EXPORT_FORMATS,
  prices: EXPORT_FORMATS,
} as const satisfies Readonly<Record<string, readonly ExportFormat[]>>;
export type ExportTable = keyof typeof FORMATS_OF;
export const EXPORT_TABLES = Object.keys(FORMATS_OF) as readonly ExportTable[];
export type ExportFile = `${ExportTable}.${ExportFormat}`;

export const EXPORT_FILES: readonly ExportFile[] = EXPORT_TABLES.flatMap((table) =>
  FORMATS_OF[table].map((format): ExportFile => `${table}.${format}`),
);

export const EXPORT_TYPES: Readonly<Record<ExportFormat, string>> = {
  ndjson: 'application/x-ndjson',
  csv: 'text/csv',
  parquet: 'application/vnd.apache.parquet',
  sqlite: 'application/vnd.sqlite3',
};

/** A file of one version in one coding. */
export type StoredExport = Readonly<Omit<typeof exports.$inferSelect, 'file'>> & {
  readonly file: ExportFile;
};

/**
 * `int64` holds safe integers. `instant` is RFC 3339 in UTC with six fractional digits, unless the format has its own type
 * for instants.
 */
export type ColumnType = 'int32' | 'int64' | 'double' | 'text' | 'instant';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly nullable: boolean;
  readonly value: string;
}

/** A value for each column, in their order. */
export type Row = readonly (string | number | null)[];

interface Table {
  readonly columns: readonly Column[];
  readonly key: readonly string[];
  readonly from: string;
}

const column = (name: string, type: ColumnType, value: string): Column => {
  return { name, type, value, nullable: false };
};
const nullable = (name: string, type: ColumnType, value: string): Column => {
  return { name, type, value, nullable: true };
};

const MACHINES_WITH_PLACES = `machines m
      join regions r on r.id = m.region_id and r.organization_id is null
      join providers p on p.id = r.provider_id`;

const CURRENCY = '(select currency from lineage)';

const CONTINENT = `case ${CONTINENTS.map(
  (continent) =>
    `when r.country in (${COUNTRIES_OF[continent].map((country) => `'${country}'`).join(', ')}) then '${continent}'`,
).join(' ')} end`;

const TABLES: Readonly<Record<ExportTable, Table>> = {
  machines: {
    columns: [
      column('id', 'int32', 'm.id'),
      column('name', 'text', 'm.name'),
      column('cpu', 'int32', 'm.cpu'),
      column('ram', 'int32', 'm.ram'),
      column('ram_unit', 'text', 'm.ram_unit'),
      column(
        'ram_bytes',
        'int64',
        "m.ram * case m.ram_unit when 'Binary' then 1073741824 else 1000000000 end",
      ),
      column('list_price', 'double', 'm.price'),
      nullable('currency', 'text', CURRENCY),
      column('provider_id', 'int32', 'p.id'),
      column('provider', 'text', 'p.name'),
      column('region_id', 'int32', 'r.id'),
      column('region_code', 'text', 'r.code'),
      column('region', 'text', 'r.name'),
      nullable('country', 'text', 'r.country'),
      nullable('continent', 'text', CONTINENT),
      nullable('architecture', 'text', 'm.architecture'),
      nullable('generation', 'text', 'm.generation'),
      nullable('cpu_kind', 'text', 'm.cpu_kind'),
      nullable('local_disk', 'double', 'm.local_disk'),
      nullable('network', 'double', 'm.network'),
      nullable('included_traffic', 'double', 'm.included_traffic'),
      nullable('included_ipv4', 'int32', 'm.included_ipv4'),
      nullable('as_of', 'instant', 'f.verified_at'),
      nullable('orderable_until', 'instant', 'm.orderable_until'),
      nullable('retires_at', 'instant', 'm.retires_at'),
      // 0 for a sold-out machine.
      column('available', 'int32', '(m.excluded_reason is null)'),
    ],
    key: ['id'],
    from: `${MACHINES_WITH_PLACES}
      left join region_freshness f on f.source_id = m.source_id and f.region_id = m.region_id
      where ${IS_PUBLISHED_OR_SOLD_OUT}`,
  },
  // A gap in a machine's prices is a time without a price.
  prices: {
    columns: [
      column('machine_id', 'int32', 'h.machine_id'),
      column('list_price', 'double', 'h.price'),
      column('valid_from', 'instant', 'h.valid_from'),
      nullable('valid_to', 'instant', 'h.valid_to'),
    ],
    key: ['machine_id', 'valid_from'],
    from: `machine_prices h
      join machines m on m.id = h.machine_id and ${IS_PUBLISHED_OR_SOLD_OUT}
      join regions r on r.id = m.region_id and r.organization_id is null
      where h.price > 0`,
  },
};

export const columnsOf = (table: ExportTable): readonly Column[] => TABLES[table].columns;
export const keyOf = (table: ExportTable): readonly string[] => TABLES[table].key;

/** Returns the statement that reads all rows of a table. */
export function statementOf(table: ExportTable): string {
  const { columns, key, from } = TABLES[table];
  const order = key.map((name) => columns.find((each) => each.name === name)?.value);
  return `select ${columns.map(typed).join(', ')} from ${from} order by ${order.join(', ')}`;
}

function typed({ type, value }: Column): string {
  switch (type) {
    case 'int32':
      return `(${value})::int`;
    case 'int64':
    case 'double':
      return `(${value})::float8`;
    case 'text':
      return value;
    case 'instant':
      return instantText(value, 'us');
  }
}
