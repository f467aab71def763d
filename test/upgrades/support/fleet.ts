/** Runs one release on new servers until it has data of every kind. Returns its fixture. */
import { execFile } from 'node:child_process';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { startEmbeddedPostgres } from '../../../src/dev/postgres.ts';
import { SAMPLE_RATES } from '../../../src/dev/sample/rates.ts';
import { SAMPLE_HETZNER_TOKEN } from '../../../src/dev/sample/upstream.ts';
import { freePort } from '../../../src/processes/port.ts';
import { openRedis, redisReady } from '../../../src/redis/redis.ts';
import { YEARLY } from '../../support/day.ts';
import { startProgram } from '../../support/program.ts';
import { startTestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { readCache } from './cache-values.ts';
import { readRows } from './database-rows.ts';
import { type EvolvingUpstream, startEvolvingUpstream } from './evolving-upstream.ts';
import type { Fixture } from './fixture.ts';
import { answerTo } from './recorded-answers.ts';
import { recordAnswers } from './requests.ts';

const run = promisify(execFile);
/** Workers evaluate alerts once a minute. */
const WORKED_WITHIN_MS = 240_000;

type Env = Readonly<Record<string, string>>;
type Command = (...args: string[]) => Promise<Record<string, unknown>>;

/** @param cli of the release @param notify called with each step */
export async function fleetOf(
  cli: string,
  notify: (step: string) => void,
): Promise<Omit<Fixture, 'release'>> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-fixture-')));
  const server = opened.use(
    await startEmbeddedPostgres({ dataDir: join(folder.path, 'postgres'), durable: false }),
  );
  const [cache, queue] = [opened.use(await startTestRedis()), opened.use(await startTestRedis())];
  const upstream = opened.use(await startEvolvingUpstream(SAMPLE_HETZNER_TOKEN));
  const env = {
    PATH: process.env.PATH ?? '',
    DATABASE_URL: server.url,
    CACHE_REDIS_URL: cache.url,
    QUEUE_REDIS_URL: queue.url,
    LOG_LEVEL: 'warn',
    FLEETBOOK_OPERATOR: 'fixture',
    CATALOGUE_RATES: Object.entries(SAMPLE_RATES.rates)
      .map((each) => each.join(':'))
      .join(),
    ...upstream.settings,
    // A busy machine must not refuse an answer that is recorded.
    MAX_EVENT_LOOP_DELAY: '0',
    HETZNER_SCHEDULE: YEARLY,
    LINODE_SCHEDULE: YEARLY,
    CLUSTERS_SCHEDULE: YEARLY,
  };
  const command = commandsOf(cli, env);
  notify('migrates, creates organizations and tokens');
  const migration = ((await command('migrate')) as { applied: string[] }).applied.at(-1) ?? '';
  const tokens = await createAccounts(command);
  notify('runs the sources');
  for (const source of ['hetzner', 'linode', 'clusters']) await command('sync', source);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const serve = { ...env, PORT: String(port), OPS_PORT: String(await freePort()) };
  const reader = opened.use(await startProgram(cli, ['serve'], { env: serve }));
  await until(async () => (await fetch(`${url}/readyz`)).ok, { what: reader.output(), everyMs: 100 });
  const cursor = await cursorOf(url, tokens);
  notify('changes prices, machines and clusters');
  await changeFleet(command, upstream);
  const sql = postgres(server.url, { max: 1, onnotice: () => {} });
  opened.defer(() => sql.end({ timeout: 5 }));
  notify('waits for a worker: alerts, files of the catalogue');
  await work(cli, env, sql);
  notify('records answers');
  const { answers, openApi } = await recordAnswers(url, tokens, cursor);
  await reader[Symbol.asyncDispose]();
  const redis = openRedis(cache.url, 'publisher', () => {});
  opened.defer(() => redis.disconnect());
  await redisReady(redis, 5000);
  return {
    migration,
    madeAt: new Date().toISOString(),
    tokens,
    rows: await readRows(sql),
    cache: await readCache(redis),
    answers,
    openApi,
  };
}

function commandsOf(cli: string, env: Env): Command {
  return async (...args) => {
    const running = run(process.execPath, [cli, ...args, '--json'], { env });
    // A run whose batch is held ends with another exit code, and prints its result.
    const { stdout } = await running.catch((error: { stdout?: string; stderr?: string }) => {
      if (error.stdout?.startsWith('{') || error.stdout?.startsWith('[')) return { stdout: error.stdout };
      throw new Error(`${args.join(' ')}: ${error.stderr}`, { cause: error });
    });
    return stdout.trim() === '' ? {} : JSON.parse(stdout);
  };
}

async function createAccounts(command: Command): Promise<Record<string, string>> {
  for (const slug of ['sample', 'other', 'closed']) await command('org', 'create', slug);
  const create = async (org: string, ...more: string[]) => {
    const made = await command('token', 'create', '--org', org, ...more);
    return made as { id: number; token: string };
  };
  const all = await create('sample');
  const machines = await create('sample', '--scope', 'machines:read');
  const revoked = await create('sample');
  const other = await create('other', '--expires', '3650d');
  const deleted = await create('closed');
  await command('token', 'delete', String(revoked.id));
  await command('org', 'delete', 'closed', '--yes');
  await command('operator', 'create', 'ada', '--role', 'admin');
  const tokens = { all, machines, revoked, other, deleted };
  return Object.fromEntries(Object.entries(tokens).map(([name, { token }]) => [name, token]));
}

async function cursorOf(url: string, tokens: Env): Promise<string | undefined> {
  const { status, body } = await answerTo(url, { token: 'all', path: '/v1/changes' }, tokens);
  return status === 200 ? (JSON.parse(body) as { next: string }).next : undefined;
}

interface ServerType {
  prices: { price_hourly: { net: string; gross: string } }[];
}
const times = (types: readonly ServerType[], factor: number) => {
  for (const { prices } of types)
    for (const { price_hourly: price } of prices) price.net = (Number(price.net) * factor).toFixed(10);
};

async function changeFleet(command: Command, upstream: EvolvingUpstream): Promise<void> {
  // A price changes, a plan is sold out in a region, and a cluster stops.
  upstream.edit<{ server_types: ServerType[] }>('/hetzner/v1/server_types', ({ server_types: types }) =>
    times(types.slice(0, 1), 1.1),
  );
  await command('sync', 'hetzner');
  upstream.edit<{ data: { available: boolean }[] }>('/linode/v4beta/regions/availability', ({ data }) => {
    const first = data.find(({ available }) => available);
    if (first) first.available = false;
  });
  await command('sync', 'linode');
  upstream.edit<{ status: string }[]>('/clusters.json', (clusters) => {
    for (const cluster of clusters.slice(0, 1)) cluster.status = 'Stopped';
    clusters.pop();
  });
  await command('sync', 'clusters');
  // Every price triples: the batch is held, and rejected. Then every price is five times as high: held without a decision.
  upstream.edit<{ server_types: ServerType[] }>('/hetzner/v1/server_types', ({ server_types: types }) =>
    times(types, 3),
  );
  await command('sync', 'hetzner');
  const held = (await command('hold', 'list')) as unknown as { batch?: number; id?: number }[];
  const batch = held[0]?.batch ?? held[0]?.id;
  if (batch === undefined) throw new Error(`no batch is held: ${JSON.stringify(held)}`);
  await command('hold', 'reject', 'hetzner', String(batch), '--yes');
  upstream.edit<{ server_types: ServerType[] }>('/hetzner/v1/server_types', ({ server_types: types }) =>
    times(types, 5 / 3),
  );
  await command('sync', 'hetzner');
}

/** Runs a worker until it has opened an alert, written the files of the catalogue if the release has some, and is done. */
async function work(cli: string, env: Env, sql: postgres.Sql): Promise<void> {
  await using worker = await startProgram(cli, ['work'], {
    env: { ...env, OPS_PORT: String(await freePort()) },
  });
  const isDone = async () => {
    const [state] = await sql<{ alerts: boolean; hasFiles: boolean; runs: boolean; dirty: boolean }[]>`
      select exists (select from alerts) as alerts, to_regclass('exports') is not null as "hasFiles",
        exists (select from sync_runs where outcome = 'running') as runs,
        exists (select from regions where organization_id is null and published_version < version)
          or exists (select from organizations where published_version < clusters_version)
          or exists (select from tokens where published_version < version)
          or exists (select from lineage where providers_published_version < providers_version) as dirty`;
    const hasFiles = state?.hasFiles && (await sql`select from exports limit 1`).length === 0;
    return state?.alerts && !state.runs && !state.dirty && !hasFiles;
  };
  await until(isDone, { timeoutMs: WORKED_WITHIN_MS, everyMs: 500, what: `a worker: ${worker.output()}` });
}
