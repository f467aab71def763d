/** A catalogue with all values that a format may get wrong, and its files. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClientDatabase, Sql } from '../../../src/db/connection/client.ts';
import { openStore, type Store } from '../../../src/db/connection/connect.ts';
import { type Made, makeExports } from '../../../src/features/exports/make.ts';
import { exportChunk, newestExports } from '../../../src/features/exports/routes.ts';
import type { StoredExport } from '../../../src/features/exports/tables.ts';
import { addMachine, addProvider, addRegion, addSource, verify } from '../../snapshot/rows.ts';
import { createDatabase } from '../../support/postgres.ts';

export interface ExportScene extends AsyncDisposable {
  readonly url: string;
  readonly store: Store;
  readonly folder: string;
  make(): Promise<Made>;
}

/** Names that need escapes: separators, quotes, line ends, all planes of Unicode. */
export const NAMES = [
  'plain',
  'a,b',
  '"quoted"',
  'line\nfeed',
  'cr\r\nlf',
  ' blank ',
  '大 🚀',
  "'; drop",
  '\\N',
  'ß"",\n',
];

export async function openExportScene(): Promise<ExportScene> {
  const opened = new AsyncDisposableStack();
  const database = opened.use(await createDatabase());
  const store = opened.use(openStore({ url: database.url, role: 'worker', connections: 4 }));
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-test-exports-'));
  opened.defer(() => rm(folder, { recursive: true }));
  return {
    url: database.url,
    store,
    folder,
    make: () => makeExports(store, join(folder, 'making')),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Adds a published region with a machine for each of `NAMES`. Each machine was withdrawn for a while. Returns its id. */
export async function addCatalogue(sql: Sql): Promise<number> {
  await addSource(sql, 'cloud', 'catalogue');
  await verify(sql, 'cloud', '2026-01-02T03:04:05.678901Z');
  const region = await addRegion(sql, await addProvider(sql, 1, 'Wölkchen, "Inc." 🚀'), 'zrh', 'Zürich');
  for (const [index, name] of NAMES.entries())
    await addMachine(sql, region, { name, price: `0.00000000045${index}`, cpu: index + 1, source: 'cloud' });
  await addMachine(sql, region, { name: 'gpu', source: 'cloud', excluded: 'accelerator' });
  await sql`update machines set ram_unit = 'Decimal', ram = 96 where name = 'a,b'`;
  await sql`
    update machines set architecture = 'arm64', generation = '3rd, "Gen"', cpu_kind = 'shared', local_disk = 37.5, network = 0
    where name = 'plain'`;
  await sql`
    insert into machine_prices (machine_id, valid_from, valid_to, price, source_amount, source_per, source_currency)
    select m.id, t.begun, t.ended, case when t.withdrawn then 0 else m.price * t.factor end, 1, 'hour', 'USD'
    from machines m, (values
      ('2025-01-01T00:00:00.000001Z'::timestamptz, '2025-06-30T23:59:59.999999Z'::timestamptz, 3, false),
      ('2025-06-30T23:59:59.999999Z', '2025-07-01T00:00:00Z', 1, true),
      ('2025-07-01T00:00:00Z', null, 1, false)
    ) as t (begun, ended, factor, withdrawn)`;
  await sql`update lineage set currency = 'USD'`;
  return region;
}

/** Returns the bytes of a stored file, and checks their hash. */
export async function storedBytes(db: ClientDatabase, stored: StoredExport): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for (
    let chunk = await exportChunk(db, stored.id, 0);
    chunk;
    chunk = await exportChunk(db, stored.id, chunks.length)
  )
    chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const hash = createHash('sha256').update(bytes).digest('base64url');
  if (hash !== stored.hash || bytes.length !== stored.bytes)
    throw new Error(`${stored.file} (${stored.coding}) is not what its row says`);
  return bytes;
}

/** Writes the newest files into the scene's folder. Returns the path of each. */
export async function download({
  store,
  folder,
}: ExportScene): Promise<Record<StoredExport['file'], string>> {
  const paths: Partial<Record<StoredExport['file'], string>> = {};
  for (const stored of await newestExports(store.db)) {
    if (stored.coding !== 'identity') continue;
    const path = join(folder, stored.file);
    await writeFile(path, await storedBytes(store.db, stored));
    paths[stored.file] = path;
  }
  return paths as Record<StoredExport['file'], string>;
}

/** Adds machines, each with a price and a name of 32 × `words` characters. */
export async function addMany(sql: Sql, region: number, count: number, words = 1): Promise<void> {
  await sql`
    with added as (
      insert into machines (region_id, name, cpu, ram, ram_unit, price, source_id)
      select ${region}, n || repeat(md5(n::text), ${words}::int), 2, 8, 'Binary', 0.001 + n * 0.0000001, 'cloud'
      from generate_series(1, ${count}::int) n returning id, price
    )
    insert into machine_prices (machine_id, valid_from, price, source_amount, source_per, source_currency)
    select id, now(), price, 1, 'hour', 'USD' from added`;
  await raise(sql, region);
}

export async function raise(sql: Sql, region: number): Promise<void> {
  await sql`update regions set version = version + 1 where id = ${region}`;
}
