/** pandas, polars, DuckDB and Python's sqlite3 read the same rows, in the same order, from every export file. */
import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addCatalogue, download, type ExportScene, openExportScene } from '../features/exports/scene.ts';
import { addMachine } from '../snapshot/rows.ts';
import { needs } from '../support/needs.ts';

const run = promisify(execFile);
const PROGRAM = join(import.meta.dirname, 'python/read_exports.py');
/** Texts that a reader may take for a number, null or a truth value. */
const MISTAKABLE = ['NA', 'null', '007', '1e5', 'true', '2026-01-01'];

/** The types of Parquet's columns: 32-bit and 64-bit integer, double, text, instant. */
const TYPES = {
  pandas: ['int32', 'int64', 'float64', 'str', 'datetime64[us, UTC]'],
  polars: ['Int32', 'Int64', 'Float64', 'String', "Datetime(time_unit='us', time_zone='UTC')"],
  duckdb: ['INTEGER', 'BIGINT', 'DOUBLE', 'VARCHAR', 'TIMESTAMP WITH TIME ZONE'],
} as const;
const PARQUET_COLUMNS = ['id', 'ram_bytes', 'list_price', 'name', 'as_of'];
/** CSV and NDJSON have no types. Each program must still guess a double and a text. */
const GUESSED_COLUMNS = ['list_price', 'name', 'region_code'];

type Read = Record<
  string,
  { readonly types: Record<string, string>; readonly rows: readonly Record<string, unknown>[] }
>;

/** @param modules of Python */
function hasPython(...modules: readonly string[]): boolean {
  const find = `import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ${JSON.stringify(modules)})))`;
  try {
    execFileSync('python3', ['-c', find], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

let scene: ExportScene;
/** By table: the rows of PostgreSQL. test/features/exports shows that those of the SQLite files are equal. */
const expected: Record<string, readonly unknown[]> = {};

beforeAll(async () => {
  scene = await openExportScene();
  const region = await addCatalogue(scene.store.sql);
  for (const name of MISTAKABLE) await addMachine(scene.store.sql, region, { name, source: 'cloud' });
  await scene.make();
  const files = await download(scene);
  for (const table of ['machines', 'prices'] as const) {
    const database = new DatabaseSync(files[`${table}.sqlite`], { readOnly: true });
    const rows = database.prepare(`select * from ${table}`).all();
    expected[table] = rows.map((row) => ({ ...row }));
    database.close();
  }
});
afterAll(() => scene?.[Symbol.asyncDispose]());

async function readBy(program: string): Promise<Read> {
  const { stdout } = await run('python3', ['-W', 'error', PROGRAM, scene.folder, program], {
    maxBuffer: 64 * 2 ** 20,
  });
  return JSON.parse(stdout) as Read;
}

describe.each([
  ['pandas', ['pandas', 'pyarrow'], 8],
  ['polars', ['polars'], 8],
  ['duckdb', ['duckdb'], 6],
  ['sqlite3', ['sqlite3'], 2],
] as const)('%s', (program, modules, count) => {
  it(
    'reads the same rows from each file',
    needs(hasPython(...modules), `python3 with ${modules.join(' and ')}`),
    async () => {
      const found = await readBy(program);
      expect(Object.keys(found)).toHaveLength(count);
      for (const [file, { rows }] of Object.entries(found))
        expect(rows, file).toEqual(expected[file.split('.')[0] ?? '']);
      if (program === 'sqlite3') return;
      const { types = {} } = found['machines.parquet'] ?? {};
      expect(PARQUET_COLUMNS.map((name) => types[name])).toEqual(TYPES[program]);
      for (const file of ['machines.csv', 'machines.ndjson'])
        expect(
          GUESSED_COLUMNS.map((name) => found[file]?.types[name]),
          file,
        ).toEqual([TYPES[program][2], TYPES[program][3], TYPES[program][3]]);
    },
  );
});
