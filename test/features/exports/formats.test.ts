/** Real clients read the files, and find the same rows as PostgreSQL. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gunzipSync } from 'node:zlib';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { csvLine } from '../../../src/features/exports/csv.ts';
import { newestExports } from '../../../src/features/exports/routes.ts';
import {
  columnsOf as columnsOfExport,
  EXPORT_FILES,
  type StoredExport,
} from '../../../src/features/exports/tables.ts';
import { runs } from '../../support/random.ts';
import { addCatalogue, download, type ExportScene, NAMES, openExportScene, storedBytes } from './scene.ts';

let scene: ExportScene;
let files: Record<StoredExport['file'], string>;
let duckdb: DuckDBConnection;
/** By table: the rows of PostgreSQL. */
const truth: Record<string, readonly unknown[]> = {};

beforeAll(async () => {
  scene = await openExportScene();
  const { sql } = scene.store;
  await addCatalogue(sql);
  await sql`update machines set excluded_reason = 'sold_out' where name = ' blank '`;
  await sql`update regions set country = 'DE' where id = (select min(id) from regions)`;
  const [ending] = await sql<{ id: number }[]>`
    update machines set orderable_until = '2027-03-01T08:00:00Z', retires_at = '2027-09-30T00:00:00Z'
    where id = (select min(id) from machines where excluded_reason is null) returning id`;
  // Each machine has two prices of the past, and a row of its own.
  expect(await scene.make()).toMatchObject({ outcome: 'made', rows: NAMES.length * 3 });
  files = await download(scene);
  duckdb = await (await DuckDBInstance.create(':memory:')).connect();
  await duckdb.run("set TimeZone = 'UTC'");
  truth.machines = await sql`
    select m.id, m.name, m.cpu, m.ram::int as ram, m.ram_unit,
      (m.ram * case m.ram_unit when 'Binary' then 1024 ^ 3 else 1000 ^ 3 end)::float8 as ram_bytes,
      m.price::float8 as list_price, 'USD' as currency, p.id as provider_id, p.name as provider, r.id as region_id,
      r.code as region_code, r.name as region, r.country,
      case r.country when 'DE' then 'europe' end as continent, m.architecture, m.generation, m.cpu_kind,
      m.local_disk::float8 as local_disk, m.network::float8 as network,
      m.included_traffic::float8 as included_traffic, m.included_ipv4,
      '2026-01-02T03:04:05.678901Z' as as_of,
      case when m.id = ${ending?.id ?? 0} then '2027-03-01T08:00:00.000000Z' end as orderable_until,
      case when m.id = ${ending?.id ?? 0} then '2027-09-30T00:00:00.000000Z' end as retires_at,
      (m.name <> ' blank ')::int as available
    from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    where m.name = any(${[...NAMES]}) order by m.id`;
  truth.prices = await sql`
    select h.machine_id, h.price::float8 as list_price,
      to_char(h.valid_from at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as valid_from,
      to_char(h.valid_to at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as valid_to
    from machine_prices h join machines m on m.id = h.machine_id
    where m.name = any(${[...NAMES]}) and h.price > 0 order by 1, 3`;
});
afterAll(async () => {
  duckdb?.closeSync();
  await scene?.[Symbol.asyncDispose]();
});

const OWN_TABLES = ['machines', 'prices'] as const;

/** Returns the columns for DuckDB: instants as text, integers as JSON numbers. */
function columnsOf(table: (typeof OWN_TABLES)[number]): string {
  return columnsOfExport(table)
    .map(({ name, type }) => {
      if (type === 'instant') return `strftime(${name}::timestamptz, '%Y-%m-%dT%H:%M:%S.%fZ') as ${name}`;
      const number = { int32: 'integer', int64: 'double', double: 'double', text: undefined }[type];
      return number ? `${name}::${number} as ${name}` : name;
    })
    .join(', ');
}

describe.each(OWN_TABLES)('%s', (table) => {
  it.each(['parquet', 'csv', 'ndjson'] as const)(
    'DuckDB reads from %s the rows of PostgreSQL',
    async (format) => {
      const reader = { parquet: 'read_parquet', csv: 'read_csv', ndjson: 'read_ndjson' }[format];
      // An empty text is not null. DuckDB guesses the type of each column from a sample.
      const options = format === 'csv' ? ", header = true, allow_quoted_nulls = false, nullstr = ''" : '';
      const found = await duckdb.runAndReadAll(
        `select ${columnsOf(table)} from ${reader}('${files[`${table}.${format}`]}'${options}) order by 1, 3`,
      );
      const expected = [...(truth[table] ?? [])].sort(byFirstAndThird);
      expect(sorted(found.getRowObjectsJson())).toEqual(expected);
      expect(expected.length).toBeGreaterThan(0);
    },
  );

  it('SQLite reads the rows of PostgreSQL, from a file without free pages', () => {
    const database = new DatabaseSync(files[`${table}.sqlite`], { readOnly: true });
    const rows = database
      .prepare(`select * from ${table}`)
      .all()
      .map((row) => ({ ...row }));
    expect(sorted(rows)).toEqual(sorted(truth[table] ?? []));
    expect(database.prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' });
    expect(database.prepare('pragma freelist_count').get()).toEqual({ freelist_count: 0 });
    expect(database.prepare('pragma user_version').get()).toEqual({ user_version: 1 });
    database.close();
  });

  it('a CSV reader finds the rows of PostgreSQL', async () => {
    const texts = (truth[table] ?? []).map((row) =>
      Object.fromEntries(
        Object.entries(row as object).map(([name, value]) => [name, value === null ? '' : String(value)]),
      ),
    );
    const found = parse<Record<string, string>>(await readFile(files[`${table}.csv`]), { columns: true });
    expect(
      found.map(({ list_price, ...row }) => ({ ...row, list_price: String(Number(list_price)) })),
    ).toEqual(texts);
  });
});

it('Parquet columns have the documented types', async () => {
  const found = await duckdb.runAndReadAll(`describe select * from '${files['machines.parquet']}'`);
  const types = Object.fromEntries(
    found.getRowObjectsJson().map(({ column_name, column_type }) => [column_name, column_type]),
  );
  expect(types).toMatchObject({
    id: 'INTEGER',
    name: 'VARCHAR',
    ram_bytes: 'BIGINT',
    list_price: 'DOUBLE',
    as_of: 'TIMESTAMP WITH TIME ZONE',
  });
});

it('all files are stored, and compressed files have the same content', async () => {
  const { db } = scene.store;
  const stored = await newestExports(db);
  expect(stored.filter(({ coding }) => coding === 'identity').map(({ file }) => file)).toEqual(EXPORT_FILES);
  const compressed = stored.filter(({ coding }) => coding === 'gzip');
  expect(compressed.map(({ file }) => file)).toEqual(EXPORT_FILES.filter((file) => /csv|ndjson/.test(file)));
  for (const each of compressed)
    expect(gunzipSync(await storedBytes(db, each))).toEqual(await readFile(files[each.file]));
});

it('an empty catalogue makes files without rows', async () => {
  await using empty = await openExportScene();
  await addCatalogue(empty.store.sql);
  await empty.store.sql`update machines set excluded_reason = 'discontinued'`;
  expect(await empty.make()).toMatchObject({ outcome: 'made', rows: 0 });
  const made = await download(empty);
  const found = await duckdb.runAndReadAll(`select count(*)::int as n from '${made['machines.parquet']}'`);
  expect(found.getRowObjectsJson()).toEqual([{ n: 0 }]);
  expect(await readFile(made['prices.csv'], 'utf8')).toBe('machine_id,list_price,valid_from,valid_to\r\n');
  expect(await readFile(made['machines.ndjson'], 'utf8')).toBe('');
});

it('a CSV returns any text unchanged', async () => {
  const rows = fc.array(
    fc.tuple(
      fc.string({ unit: 'binary', minLength: 1 }).filter((text) => !text.includes('\0')),
      fc.integer(),
    ),
    {
      minLength: 1,
      maxLength: 100,
    },
  );
  let number = 0;
  await fc.assert(
    fc.asyncProperty(rows, async (given) => {
      const path = join(scene.folder, `any-${number++}.csv`);
      await writeFile(path, csvLine(['text', 'number']) + given.map(csvLine).join(''));
      const found = await duckdb.runAndReadAll(
        `select * from read_csv('${path}', header = true, auto_detect = false, quote = '"', escape = '"', delim = ',', new_line = '\\r\\n',
         columns = {text: 'varchar', number: 'integer'}, allow_quoted_nulls = false)`,
      );
      const plain = found.getRows().map(([text, value]) => [withoutGuard(String(text)), value]);
      expect(plain).toEqual(given.map(([text, value]) => [wellFormed(text), value]));
    }),
    { numRuns: runs(5) },
  );
});

/** Removes the apostrophe, as docs/exports.md describes. */
const withoutGuard = (text: string) => text.replace(/(^|;)'(?=['"]*[=+\-@\t\r\n＝＋－＠])/g, '$1');

it.each([
  ["=HYPERLINK('http://evil.example')", "'=HYPERLINK('http://evil.example')"],
  ['+1', "'+1"],
  ['-1', "'-1"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t=1"],
  ['\r=1', '"\'\r=1"'],
  ['=1,2', '"\'=1,2"'],
  ['\n=1', '"\'\n=1"'],
  ['＝1+1', "'＝1+1"],
  ['＋1', "'＋1"],
  ['－1', "'－1"],
  ['＠SUM(A1)', "'＠SUM(A1)"],
  ['a;=1', "a;'=1"],
  ['a;b;＝1;-1', "a;b;'＝1;'-1"],
  ['a;"=1"', '"a;\'""=1"""'],
  ['"=1"', '"\'""=1"""'],
  ["a;'=1", "a;''=1"],
  ['a; b', 'a; b'],
  ["'=1", "''=1"],
  ["'s", "'s"],
  ['a=1', 'a=1'],
])('a CSV writes the text %j as %j, which no spreadsheet reads as a formula', (text, written) => {
  expect(csvLine([text])).toBe(`${written}\r\n`);
});

it('a CSV writes a negative number as a number', () => {
  expect(csvLine([-1.5, 2])).toBe('-1.5,2\r\n');
});

/** Replaces what UTF-8 cannot encode. */
const wellFormed = (text: string) => Buffer.from(text).toString();

const byFirstAndThird = (a: unknown, b: unknown) => keyOf(a).localeCompare(keyOf(b));
const keyOf = (row: unknown) => {
  const values = Object.values(row as object);
  return `${String(values[0]).padStart(12, '0')} ${values[2]}`;
};
const sorted = (rows: readonly unknown[]) => [...rows].sort(byFirstAndThird);
