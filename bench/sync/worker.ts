/**
 * The measured process: a worker as in production, with one job. Its argument is a `Task` as JSON; its result is the
 * one line that it writes.
 */

import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'bullmq';
import { pino } from 'pino';
import type { SyncJob } from '../../src/app/actions/source.ts';
import { openLoggedRedis } from '../../src/app/connections.ts';
import { composeWorker } from '../../src/app/worker.ts';
import type { Config, SourceConfig } from '../../src/config/config.ts';
import { readSettings } from '../../src/config/settings.ts';
import { redisReady } from '../../src/redis/redis.ts';
import { NO_RULES } from '../../src/sources/cluster-rules.ts';
import { NO_CREDENTIALS } from '../../src/sources/credentials/provider.ts';
import { DEFAULT_GUARD_LIMITS } from '../../src/sync/guards.ts';
import { claimSlot } from '../../src/sync/runs/slots.ts';
import { openQueues, QUEUE_PREFIX, SYNC_QUEUE } from '../../workers/queues.ts';
import { syncProcessor } from '../../workers/sync-job.ts';
import { benchAdapter, type CatalogueShape } from './catalogue.ts';
import { benchControlPlane, type ClustersShape } from './clusters.ts';

export interface Task {
  readonly what: 'sync' | 'sweep';
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly shape: CatalogueShape | ClustersShape;
}

/** One stretch of work in the measured process. */
export interface Stretch {
  readonly seconds: number;
  /** CPU time of the process, user and system. */
  readonly cpuSeconds: number;
  /** Event loop delay in milliseconds: 99.9th percentile and maximum. */
  readonly loopP999: number;
  readonly loopMax: number;
  /** The peak memory of the process, in bytes. */
  readonly rssPeak: number;
}

export interface Measured {
  /** Fetch, stage, diff, guard and write: up to the commit. Absent if the task only publishes. */
  readonly sync: Stretch | undefined;
  readonly publish: Stretch;
  readonly outcome: string;
  /** Bytes. */
  readonly rssBefore: number;
  /** How often BullMQ reported a lost or expired lock, or restarted the job. */
  readonly locksLost: number;
}

const CLAIMED_WITHIN_MS = 5000;

process.stdout.write(`${JSON.stringify(await measure(JSON.parse(process.argv[2] ?? '') as Task))}\n`);

async function measure(task: Task): Promise<Measured> {
  const logger = pino({ level: 'warn' }, pino.destination(2));
  const settings = readSettings({
    DATABASE_URL: task.databaseUrl,
    REDIS_URL: task.redisUrl,
    CATALOGUE_RATES: 'EUR:1.0845',
  });
  const config: Config = { settings, sources: [sourceOf(task.shape)], content: 'live', sections: {} };
  await using worker = composeWorker(config, logger);
  await redisReady(worker.cache, 10_000);
  if (task.what === 'sync') return await syncAsJob(config, worker, task.redisUrl);
  const rssBefore = process.memoryUsage.rss();
  const publish = stretch();
  const { published } = await worker.publisher.compare();
  return {
    sync: undefined,
    publish: publish(),
    outcome: `${published} documents`,
    rssBefore,
    locksLost: 0,
  };
}

function sourceOf(shape: Task['shape']): SourceConfig {
  const common = {
    url: 'http://127.0.0.1:1',
    credentials: NO_CREDENTIALS,
    schedule: '0 * * * *',
    maxAge: 10_800,
    limits: DEFAULT_GUARD_LIMITS,
  };
  return 'clusters' in shape
    ? { ...common, kind: 'clusters', id: 'plane', adapter: benchControlPlane(shape), rules: NO_RULES }
    : { ...common, kind: 'catalogue', id: 'bench', adapter: benchAdapter(shape) };
}

async function syncAsJob(
  config: Config,
  worker: ReturnType<typeof composeWorker>,
  redisUrl: string,
): Promise<Measured> {
  const logger = pino({ level: 'warn' }, pino.destination(2));
  const producer = openLoggedRedis({ setting: 'REDIS_URL', url: redisUrl }, 'producer', logger);
  const consumer = openLoggedRedis({ setting: 'REDIS_URL', url: redisUrl }, 'worker', logger);
  await redisReady(producer, 10_000);
  const queues = openQueues(producer, QUEUE_PREFIX, logger);
  let outcome = '';
  let sync: Stretch | undefined;
  let lap: (() => Stretch) | undefined;
  let published: Stretch | undefined;
  let locksLost = 0;
  const rssBefore = process.memoryUsage.rss();
  const processor = syncProcessor({
    config,
    worker,
    logger,
    observe(_, result) {
      outcome = result;
      sync = lap?.();
      lap = stretch();
    },
  });
  const consuming = new Worker<SyncJob>(
    SYNC_QUEUE,
    (job, token, signal) => {
      lap = stretch();
      return processor(job, token, signal);
    },
    { connection: consumer, prefix: QUEUE_PREFIX },
  );
  consuming.on('lockRenewalFailed', () => {
    locksLost += 1;
  });
  consuming.on('stalled', () => {
    locksLost += 1;
  });
  consuming.on('error', (error) => {
    if (error.message.includes('lock')) locksLost += 1;
  });
  const ended = new Promise<void>((resolve, reject) => {
    consuming.on('completed', () => {
      published = lap?.();
      resolve();
    });
    consuming.on('failed', (_, error) => {
      console.error(error);
      reject(error);
    });
  });
  try {
    const slot = await claimNow(worker, config.sources[0]?.id ?? '');
    await queues.sync.add('sync', { sourceId: slot.schedule, slot: slot.slot, attempt: 0 });
    await ended;
  } finally {
    await consuming.close();
    for (const queue of queues.all) await queue.close();
    producer.disconnect();
    consumer.disconnect();
  }
  if (!sync || !published) throw new Error('the job ended without a sync');
  return { sync, publish: published, outcome, rssBefore, locksLost };
}

/** Claims the slot of this second. The sync before may have it still; slots are stored in seconds. */
async function claimNow({ store }: ReturnType<typeof composeWorker>, schedule: string) {
  const end = performance.now() + CLAIMED_WITHIN_MS;
  while (performance.now() < end) {
    const slot = { schedule, slot: `${new Date().toISOString().slice(0, 19)}Z` };
    if (await claimSlot(store.db, slot)) return slot;
    await sleep(50);
  }
  throw new Error(`no slot of ${schedule} could be claimed within ${CLAIMED_WITHIN_MS / 1000} s`);
}

/** Starts measuring; the returned function ends it. */
function stretch(): () => Stretch {
  const loop = monitorEventLoopDelay({ resolution: 1 });
  const started = performance.now();
  const before = process.cpuUsage();
  loop.enable();
  return () => {
    const seconds = (performance.now() - started) / 1000;
    loop.disable();
    const { user, system } = process.cpuUsage(before);
    return {
      seconds,
      cpuSeconds: (user + system) / 1e6,
      loopP999: loop.percentile(99.9) / 1e6,
      loopMax: loop.max / 1e6,
      rssPeak: peakRss(),
    };
  };
}

/**
 * Linux includes the memory of the process before this program, its parent's, in `maxRSS`. The mark below excludes
 * it.
 */
function peakRss(): number {
  try {
    const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
    if (kib !== undefined) return Number(kib) * 1024;
  } catch {
    // Not Linux.
  }
  return process.resourceUsage().maxRSS * 1024;
}
