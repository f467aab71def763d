/** One source with many offers, workers that can be killed and hung, and a reader, in separate processes. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import type { SyncJob } from '../../../src/app/actions/source.ts';
import { openStore, type Store } from '../../../src/db/connection/connect.ts';
import { migrate } from '../../../src/db/migration/migrate.ts';
import { createOrganization } from '../../../src/db/organizations.ts';
import { createToken } from '../../../src/db/tokens.ts';
import { freePort } from '../../../src/processes/port.ts';
import { openRedis, type RedisClient, redisReady } from '../../../src/redis/redis.ts';
import { withFence } from '../../../src/snapshot/publish/fence.ts';
import { queuePrefix, SYNC_QUEUE } from '../../../workers/queues.ts';
import { YEARLY } from '../../support/day.ts';
import { CLI, type Program, SOURCES, startProgram } from '../../support/program.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';
import { until } from '../../support/until.ts';
import { type Agreeing, disagreements } from './agreement.ts';
import { leftovers } from './leftovers.ts';
import { editionOf, type PriceList, startPriceList } from './price-list.ts';
import { startTestPostgres } from './stack.ts';

const DIE_AT = new URL('./die-at.ts', import.meta.url).href;
export const SOURCE = 'large';

export interface WorkerStackOptions {
  readonly offers: number;
  /** Five cron fields, UTC; once a year unless given. */
  readonly schedule?: string;
  /** Address of the queues' server; a new server unless given. */
  readonly queueUrl?: string;
}

export interface WorkerStack extends AsyncDisposable {
  readonly store: Store;
  readonly upstream: PriceList;
  readonly cache: RedisClient;
  readonly queueRedis: TestRedis;
  readonly queue: Queue<SyncJob>;
  readonly reader: { readonly name: string; readonly url: string };
  readonly token: string;
  /** @param strike the step at which it kills or stops itself, see die-at.ts */
  startWorker(strike?: { readonly DIE_AT: string } | { readonly HANG_AT: string }): Promise<Program>;
  /** Expires the locks of all jobs, so that those of a dead worker are free at once. */
  expireLocks(): Promise<void>;
  /** Counts jobs of the queue that have not ended, and due attempts of the source. */
  openWork(): Promise<number>;
  /** Makes every slot due and unclaimed, and removes its job from the queue. */
  makeSlotDue(): Promise<void>;
  /** Returns the edition of every region. @throws Error if an answer has several editions */
  served(): Promise<number[]>;
  /** Returns differences between PostgreSQL, the cache and the API, and leftovers. */
  problems(): Promise<string[]>;
}

export async function openWorkerStack(options: WorkerStackOptions): Promise<WorkerStack> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-worker-faults-')));
  const postgres = opened.use(await startTestPostgres(join(folder.path, 'postgres')));
  const [cacheRedis, queueRedis] = [opened.use(await startTestRedis()), opened.use(await startTestRedis())];
  await migrate(postgres.url);
  const upstream = opened.use(await startPriceList(options.offers));
  const store = opened.use(openStore({ url: postgres.url, role: 'worker', connections: 4 }));
  const connect = async (url: string, use: 'publisher' | 'producer'): Promise<RedisClient> => {
    const redis = openRedis(url, use, () => {});
    opened.defer(() => redis.disconnect());
    await redisReady(redis, 5000);
    return redis;
  };
  const cache = withFence(await connect(cacheRedis.url, 'publisher'));
  const queueUrl = options.queueUrl ?? queueRedis.url;
  const producer = await connect(queueUrl, 'producer');
  const queue = new Queue<SyncJob>(SYNC_QUEUE, {
    connection: producer,
    prefix: await queuePrefix(store.db),
  });
  queue.on('error', () => {});
  opened.defer(() => queue.close());
  const organization = await createOrganization(store.db, 'org', 'Org');
  if (!organization) throw new Error('unreachable: the database is new');
  const { token } = await createToken(store.db, {
    organizationId: organization.id,
    scopes: ['machines:read', 'clusters:read'],
  });
  const sources = join(folder.path, 'sources.json');
  await writeFile(sources, sourcesFile(upstream.url, options.schedule ?? YEARLY));
  const env = {
    PATH: process.env.PATH,
    DATABASE_URL: postgres.url,
    CACHE_REDIS_URL: cacheRedis.url,
    QUEUE_REDIS_URL: queueUrl,
    LOG_LEVEL: 'info',
  };
  const [port, opsPort] = [await freePort(), await freePort()];
  const reader = { name: 'a', url: `http://127.0.0.1:${port}` };
  opened.use(
    await startProgram(CLI, ['serve'], {
      env: { ...env, LOG_LEVEL: 'warn', PORT: String(port), OPS_PORT: String(opsPort) },
    }),
  );
  const agreeing: Agreeing = {
    store,
    cache,
    readers: [reader],
    tokens: new Map([[organization.id, token]]),
  };
  const closing = opened.move();
  return {
    store,
    upstream,
    cache,
    queueRedis,
    queue,
    reader,
    token,
    async startWorker(strike) {
      // `die-at.ts` sets the tracer of the sources; the bundle has its own.
      return startProgram(strike ? SOURCES : CLI, ['work'], {
        env: {
          ...env,
          ...(strike && { NODE_OPTIONS: `--import=${DIE_AT}`, ...strike }),
          FLEETBOOK_CONFIG: sources,
          EXCHANGE_RATES_URL: upstream.ratesUrl,
          EXCHANGE_RATES_SCHEDULE: YEARLY,
          OPS_PORT: String(await freePort()),
        },
      });
    },
    async expireLocks() {
      const prefix = `${await queuePrefix(store.db)}:${SYNC_QUEUE}`;
      for (const id of await producer.lrange(`${prefix}:active`, 0, -1)) {
        await producer.del(`${prefix}:${id}:lock`);
        await producer.sadd(`${prefix}:stalled`, id);
      }
      await producer.del(`${prefix}:stalled-check`);
    },
    async openWork() {
      const due = await store.sql`select from schedule_slots where schedule = ${SOURCE} and due_at <= now()`;
      return due.length + (await queue.getJobCountByTypes('active', 'waiting', 'delayed'));
    },
    async makeSlotDue() {
      await queue.obliterate({ force: true });
      await store.sql`delete from schedule_slots`;
      await store.sql`update sync_runs set slot = null`;
    },
    async served() {
      const headers = { authorization: `Bearer ${token}` };
      const fetchJson = async (path: string) => (await fetch(reader.url + path, { headers })).json();
      const editions = new Set<number>();
      const providers = (await fetchJson('/v1/providers')) as { id: number; regions: { id: number }[] }[];
      for (const { id, regions } of providers)
        for (const region of regions)
          editions.add(
            editionOf(await fetchJson(`/v1/machines?provider=${id}&region=${region.id}`), upstream),
          );
      return [...editions];
    },
    async problems() {
      const left = await leftovers(store);
      return left.length > 0 ? left : disagreements(agreeing);
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

function sourcesFile(url: string, schedule: string): string {
  const source = { id: SOURCE, adapter: 'price-list', url, schedule, options: { provider: 'Large' } };
  return JSON.stringify({ catalogues: [source] });
}

export async function untilSound(stack: WorkerStack, program: Program, timeoutMs = 60_000): Promise<number> {
  const began = performance.now();
  let last: string[] = [];
  await until(
    async () => {
      last = await stack.problems();
      return last.length === 0;
    },
    { timeoutMs, everyMs: 100, what: 'all to agree and nothing to be left' },
  ).catch((error: unknown) => {
    throw new Error(`${last.slice(0, 10).join('\n')}\n${program.output().slice(-3000)}`, { cause: error });
  });
  return (performance.now() - began) / 1000;
}

/** Returns the outcome of each run of the source's slots, oldest first. */
export async function runsOf({ store }: WorkerStack): Promise<{ slot: string | null; outcome: string }[]> {
  return store.sql<{ slot: string | null; outcome: string }[]>`
    select slot::text as slot, outcome from sync_runs where source_id = ${SOURCE} order by id`;
}
