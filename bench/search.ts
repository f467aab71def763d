/** `npm run bench -- search`: the same questions to the index, to the API, to PostgreSQL and to DuckDB. */
import { createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { DuckDBInstance } from '@duckdb/node-api';
import { searchAnswers } from '../src/features/search/answers.ts';
import { searchApi } from '../src/features/search/routes.ts';
import { type CatalogueIndex, emptyIndex, indexBytes, updateIndex } from '../src/market/catalogue-index.ts';
import { search } from '../src/market/search.ts';
import { NO_BOOKS } from '../test/http/readers.ts';
import { machinesOf, providerOf, REGIONS, updateOf } from './search/catalogue.ts';
import { LIMIT, QUESTIONS, type Question } from './search/questions.ts';
import { openApi } from './support/api.ts';
import { type Bar, median, quantile } from './support/bar.ts';
import { count, flag, openStage, readOptions, report, type Stage, say } from './support/harness.ts';
import { threadCpu } from './support/thread-cpu.ts';

const { quick, rounds, json } = readOptions(
  `The same questions to the index, to the API over HTTP, to PostgreSQL over indexes and to DuckDB, side by side in each round; also the
index's memory, and the time to index a publication. A million machines of 200 regions.`,
  { quick: flag('a tenth of the machines'), rounds: count('rounds', 9), json: flag('prints JSON') },
);
const machines = quick ? 100_000 : 1_000_000;
const perRegion = machines / REGIONS;
/** Searches of the index in one round: a single one is too short for the clock. */
const REPEATS = 50;
const COLUMNS =
  'id integer, provider integer, region integer, name text, cpu integer, ram integer, price double precision, architecture text, cpu_kind text';

const bars: Bar[] = [];
const index = build();
await measure();
report(bars, { json, machines });

/** @returns the result of the work, the seconds in total, and the longest step in milliseconds of CPU time */
function timed<T>(work: Generator<void, T>): { result: T; seconds: number; longest: number } {
  const started = performance.now();
  let longest = 0;
  for (;;) {
    const before = threadCpu();
    const step = work.next();
    longest = Math.max(longest, (threadCpu() - before) / 1000);
    if (step.done) return { result: step.value, seconds: (performance.now() - started) / 1000, longest };
  }
}

function used(): number {
  for (let i = 0; i < 4; i++) globalThis.gc?.({ type: 'major', execution: 'sync' });
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** A separate function: references of its frame, e.g. to an earlier index, must not count as the index. */
function fill(): { readonly built: CatalogueIndex; readonly seconds: number; readonly longest: number } {
  let built = emptyIndex();
  let seconds = 0;
  let longest = 0;
  for (let from = 1; from <= REGIONS; from += 20) {
    const regions = Array.from({ length: 20 }, (_, i) => from + i);
    const step = timed(
      updateIndex(
        built,
        regions.map((region) => updateOf(region, machinesOf(region, perRegion))),
      ),
    );
    built = step.result;
    seconds += step.seconds;
    longest = Math.max(longest, step.longest);
  }
  return { built, seconds, longest };
}

function build(): CatalogueIndex {
  const before = used();
  const { built, seconds, longest: longestFirst } = fill();
  const took = used() - before;
  const counted = indexBytes(built);
  const changed = [7, 77, 177].map((region) =>
    timed(updateIndex(built, [updateOf(region, machinesOf(region, perRegion, 1.01), 2)])),
  );
  bars.push(
    { what: 'index, first built', found: seconds, unit: 's' },
    { what: 'index, bytes a machine', found: took / machines, unit: 'bytes' },
    // With few machines, the memory of the process itself is too large a share.
    {
      what: 'counted / taken',
      found: counted / took,
      unit: '×',
      bound: 'least',
      ...(!quick && { limit: 1 }),
    },
    {
      what: 'a changed region put in',
      found: median(changed.map((each) => each.seconds)) * 1000,
      unit: 'ms',
    },
    // A slice of src/domain/event-loop.ts ends with a step, after a millisecond.
    {
      what: 'longest step of it',
      found: Math.max(...changed.map((each) => each.longest)),
      unit: 'ms',
      limit: 1,
    },
    { what: 'longest step of the first build', found: longestFirst, unit: 'ms', limit: 1 },
  );
  return built;
}

type Ask = (question: Question) => Promise<unknown>;

async function measure(): Promise<void> {
  await using stage = await openStage();
  const file = join(stage.folder, 'machines.csv');
  await pipeline(lines(), createWriteStream(file));
  say('PostgreSQL and DuckDB read the machines');
  const contenders: Record<string, Ask> = {
    HTTP: await overHttp(stage),
    PostgreSQL: await postgres(stage, file),
    DuckDB: await duckDb(stage, file),
  };
  const times = new Map<string, number[]>();
  const note = (name: string, ms: number) => times.set(name, [...(times.get(name) ?? []), ms]);
  const every: number[] = [];
  for (const answer of Object.values(contenders)) for (const question of QUESTIONS) await answer(question);
  for (let round = 0; round < rounds; round++) {
    for (const question of QUESTIONS) {
      const each: number[] = [];
      for (let i = 0; i < REPEATS; i++) {
        const started = performance.now();
        search(index, question.filters, question.sort, LIMIT);
        each.push(performance.now() - started);
      }
      every.push(...each);
      note(`${question.what} index`, median(each));
      for (const [name, answer] of Object.entries(contenders)) {
        const started = performance.now();
        await answer(question);
        note(`${question.what} ${name}`, performance.now() - started);
      }
    }
  }
  bars.push(
    { what: 'all questions, index, p50', found: median(every), unit: 'ms', limit: 1 },
    { what: 'all questions, index, p99', found: quantile(every, 0.99), unit: 'ms', limit: 5 },
  );
  for (const { what } of QUESTIONS) {
    const of = (name: string) => median(times.get(`${what} ${name}`) ?? []);
    const { tested } = found(what);
    const others = ['HTTP', 'PostgreSQL', 'DuckDB'].map((name) => `${name} ${of(name).toFixed(2)} ms`);
    bars.push({ what, found: of('index'), unit: 'ms', note: `${tested} rows; ${others.join(', ')}` });
  }
}

function found(what: string) {
  const question = QUESTIONS.find((each) => each.what === what);
  if (!question) throw new Error('unreachable: it is one of them');
  return search(index, question.filters, question.sort, LIMIT);
}

function* lines(): Generator<string> {
  for (let region = 1; region <= REGIONS; region++) {
    const rows = machinesOf(region, perRegion).map(({ id, name, cpu, ram, price, facts }) =>
      [
        id,
        providerOf(region),
        region,
        name,
        cpu,
        ram,
        price.toFixed(18),
        facts.architecture,
        facts.cpuKind,
      ].join(),
    );
    yield `${rows.join('\n')}\n`;
  }
}

function statement({ where, order }: Question): string {
  return `select * from machines_flat where ${where} order by ${order}, price, id limit ${LIMIT}`;
}

async function postgres({ sql }: Stage, file: string): Promise<Ask> {
  await sql.unsafe(`create table machines_flat (${COLUMNS})`);
  const copy = await sql`copy machines_flat from stdin with (format csv)`.writable();
  await pipeline(createReadStream(file), copy);
  for (const columns of [
    'price, id',
    'cpu, ram, price, id',
    'region, price, id',
    'provider, price, id',
    'architecture, (price / cpu), price, id',
    'name',
  ])
    await sql.unsafe(`create index on machines_flat (${columns})`);
  await sql`vacuum analyze machines_flat`;
  return (question) => sql.unsafe(statement(question));
}

async function duckDb(stage: Stage, file: string): Promise<Ask> {
  const connection = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect();
  stage.defer(() => connection.closeSync());
  await connection.run(`create table machines_flat (${COLUMNS})`);
  await connection.run(`copy machines_flat from '${file}' (format csv, header false)`);
  return async (question) => (await connection.runAndReadAll(statement(question))).getRows();
}

async function overHttp(stage: Stage): Promise<Ask> {
  const catalogue = { get: () => ({ index, tier: 'memory' as const, asOf: () => undefined }) };
  const api = stage.use(await openApi(searchApi(searchAnswers({ catalogue, books: NO_BOOKS }))));
  return ({ query }) => api.get(`/v1/machines/search?limit=${LIMIT}${query && `&${query}`}`);
}
