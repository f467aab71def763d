/** The names and types of the files of the whole catalogue, and what is stored of each. Pure. */
import type { exports } from '../../db/schema.ts';

export const EXPORT_TABLES = ['machines', 'prices'] as const;
export const EXPORT_FORMATS = ['ndjson', 'csv', 'parquet', 'sqlite'] as const;
export type ExportTable = (typeof EXPORT_TABLES)[number];
export type ExportFormat = (typeof EXPORT_FORMATS)[number];
export type ExportFile = `${ExportTable}.${ExportFormat}`;

export const EXPORT_FILES: readonly ExportFile[] = EXPORT_TABLES.flatMap((table) =>
  EXPORT_FORMATS.map((format): ExportFile => `${table}.${format}`),
);

/** The machines of a file: `now` those that can be ordered, `all` also those that are sold out. */
export const EXPORT_SCOPES = ['now', 'all'] as const;
export type ExportScope = (typeof EXPORT_SCOPES)[number];

export const storedName = (file: ExportFile, scope: ExportScope): StoredExport['file'] =>
  scope === 'all' ? `all-${file}` : file;

export const EXPORT_TYPES: Readonly<Record<ExportFormat, string>> = {
  ndjson: 'application/x-ndjson',
  csv: 'text/csv',
  parquet: 'application/vnd.apache.parquet',
  sqlite: 'application/vnd.sqlite3',
};

export type StoredExport = Readonly<Omit<typeof exports.$inferSelect, 'file'>> & {
  readonly file: ExportFile | `all-${ExportFile}`;
};
