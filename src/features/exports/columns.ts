/** The columns of the exported tables. A new column comes last; none is ever taken away, and none changes its type. */
import type { ExportScope, ExportTable } from './files.ts';

/**
 * `int64` holds safe integers. `instant` is RFC 3339 in UTC with six fractional digits, where the format has no type of
 * its own for it.
 */
export type ColumnType = 'int32' | 'int64' | 'double' | 'text' | 'instant';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly nullable: boolean;
}

/** A value for each column, in their order. */
export type Row = readonly (string | number | null)[];

const column = (name: string, type: ColumnType): Column => ({ name, type, nullable: false });
const nullable = (name: string, type: ColumnType): Column => ({ name, type, nullable: true });

const COLUMNS: Readonly<Record<ExportTable, readonly Column[]>> = {
  machines: [
    column('id', 'int32'),
    column('name', 'text'),
    column('cpu', 'int32'),
    column('ram', 'int32'),
    column('ram_unit', 'text'),
    column('ram_bytes', 'int64'),
    column('price', 'double'),
    nullable('currency', 'text'),
    column('provider_id', 'int32'),
    column('provider', 'text'),
    column('region_id', 'int32'),
    column('region_code', 'text'),
    column('region', 'text'),
    nullable('architecture', 'text'),
    nullable('generation', 'text'),
    nullable('cpu_kind', 'text'),
    nullable('local_disk', 'double'),
    nullable('network', 'double'),
    nullable('as_of', 'instant'),
  ],
  prices: [
    column('machine_id', 'int32'),
    column('price', 'double'),
    column('valid_from', 'instant'),
    nullable('valid_to', 'instant'),
  ],
};

/** 1, or 0 for a machine that is sold out. */
const AVAILABLE = column('available', 'int32');

/** With sold-out machines, the table of machines has a column more. */
export function columnsOf(table: ExportTable, scope: ExportScope): readonly Column[] {
  return table === 'machines' && scope === 'all' ? [...COLUMNS.machines, AVAILABLE] : COLUMNS[table];
}
