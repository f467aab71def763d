/**
 * `npm run bench -- exports`: the time to make the files of a large catalogue, the additional memory of the worker's
 * process, and the size of each file. `--machines 1000000` by default, each with two prices.
 */
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeInThread } from '../src/features/exports/job.ts';
import { count } from './support/options.ts';
import { startServers } from './support/servers.ts';

const { values } = parseArgs({ options: { machines: { type: 'string', default: '1000000' } } });
const REGIONS = 200;
const machines = count('machines', values.machines, REGIONS, REGIONS);
const MB = 1e6;

await using servers = await startServers();
await using database = await servers.database('exports');
const { sql, url } = database;
await sql`insert into sources (id, kind, adapter, verified_at) values ('bench', 'catalogue', 'bench', now())`;
await sql`insert into providers (id, name, listed) values (1, 'Benchmark', true)`;
await sql`
  insert into regions (provider_id, code, name) select 1, 'zone-' || n, 'Region ' || n from generate_series(1, ${REGIONS}::int) n`;
await sql`insert into region_freshness (source_id, region_id, verified_at) select 'bench', id, now() from regions`;
await sql`
  insert into machines (region_id, name, cpu, ram, ram_unit, price, source_amount, source_per, source_currency, source_id)
  select r.id, (array['general', 'compute', 'memory', 'burst'])[1 + n % 4] || '-' || n, 1 + n % 32, 2 + n % 120, 'Binary',
    0.0001 + (n % 997) * 0.0000031, 0.006 + (n % 997) * 0.000186, 'hour', 'USD', 'bench'
  from regions r, generate_series(1, ${machines / REGIONS}::int) n`;
await sql`
  insert into machine_prices (machine_id, valid_from, valid_to, price, source_amount, source_per, source_currency)
  select id, now() - interval '30 days' + id * interval '1 second', null, price, source_amount, 'hour', 'USD' from machines
  union all
  select id, now() - interval '90 days', now() - interval '30 days' + id * interval '1 second', price * 1.1, source_amount * 1.1, 'hour', 'USD' from machines`;
await sql`vacuum analyze machines`;
await sql`vacuum analyze machine_prices`;

let peak = 0;
const before = process.memoryUsage.rss();
const watching = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 20);
const began = performance.now();
const data = { url, directUrl: url, folder: join(tmpdir(), `fleetbook-bench-exports-${process.pid}`) };
const made = await makeInThread(data, new AbortController().signal);
clearInterval(watching);
const seconds = (performance.now() - began) / 1000;
console.log(
  `${machines} machines, ${availableParallelism()} cores: ${made.outcome} in ${seconds.toFixed(1)} s`,
);
console.log(`memory: ${(before / MB).toFixed(0)} MB before, ${(peak / MB).toFixed(0)} MB at most`);
const files = await sql<{ file: string; coding: string; bytes: number; rows: number; stored: number }[]>`
  select file, coding, bytes::float8 as bytes, rows::float8 as rows,
    (select sum(pg_column_size(data)) from export_chunks where export_id = id)::float8 as stored
  from exports order by id`;
for (const { file, coding, bytes, rows, stored } of files)
  console.log(
    `${file.padEnd(18)} ${coding.padEnd(9)} ${(bytes / MB).toFixed(1).padStart(7)} MB, ${(stored / MB).toFixed(1).padStart(7)} MB stored, ${rows} rows`,
  );
