/** The names and types of the files of the whole catalogue, and what is stored of each. Pure. */
import type { exports } from '../../db/schema.ts';

export const EXPORT_FORMATS = ['ndjson', 'csv', 'parquet', 'sqlite'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** The formats of each table. The last two are in the columns of other projects, which read these formats only. */
export const FORMATS_OF = {
  machines: EXPORT_FORMATS,
  prices: EXPORT_FORMATS,
  focus_experimental: ['csv', 'parquet'],
  opencost: ['csv'],
} as const satisfies Readonly<Record<string, readonly ExportFormat[]>>;
export type ExportTable = keyof typeof FORMATS_OF;
export const EXPORT_TABLES = Object.keys(FORMATS_OF) as readonly ExportTable[];
export type ExportFile = `${ExportTable}.${ExportFormat}`;

export const EXPORT_FILES: readonly ExportFile[] = EXPORT_TABLES.flatMap((table) =>
  FORMATS_OF[table].map((format): ExportFile => `${table}.${format}`),
);

/** The columns of these files may change with any release. */
export const isExperimental = (file: ExportFile): boolean => file.startsWith('focus_experimental.');

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
