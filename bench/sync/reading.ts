/** A reader that reads continuously, like the API, while something else happens. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { composeReader } from '../../src/app/reader.ts';
import { readSettings } from '../../src/config/settings.ts';
import { type Tier, Unavailable } from '../../src/snapshot/document/answer.ts';

export interface Reading {
  readonly count: number;
  readonly answered: Readonly<Record<Tier, number>>;
  /** Answers without data: 503 over HTTP. */
  readonly unavailable: number;
  /** Answers with other bytes than before. */
  readonly wrong: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface Regions {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly providerId: number;
  readonly regionIds: readonly number[];
}

/** Milliseconds between two reads: short enough to read every region, long enough to leave the processor idle. */
const EVERY_MS = 5;

/**
 * Reads the lists of the regions in turn until `work` is done. The reader has memory for only a few regions, so that
 * most reads reach Redis, or PostgreSQL behind it.
 */
export async function readDuring(regions: Regions, work: () => Promise<unknown>): Promise<Reading> {
  const settings = readSettings({
    DATABASE_URL: regions.databaseUrl,
    REDIS_URL: regions.redisUrl,
    MEMORY_LIMIT: '16000000',
  });
  const logger = pino({ level: 'error' }, pino.destination(2));
  await using reader = await composeReader({ settings }, logger);
  const before = new Map<number, string>();
  for (const id of regions.regionIds) {
    before.set(id, (await reader.catalogue.machines(regions.providerId, id)).body.hash);
  }
  const answered: Record<Tier, number> = { memory: 0, redis: 0, postgres: 0, disk: 0 };
  const times: number[] = [];
  let unavailable = 0;
  let wrong = 0;
  let done = false;
  const working = work().finally(() => {
    done = true;
  });
  for (let question = 0; !done; question++) {
    const regionId = regions.regionIds[question % regions.regionIds.length] ?? 0;
    const started = performance.now();
    try {
      const list = await reader.catalogue.machines(regions.providerId, regionId);
      times.push(performance.now() - started);
      answered[list.tier] += 1;
      if (list.body.hash !== before.get(regionId)) wrong += 1;
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      unavailable += 1;
    }
    await sleep(EVERY_MS);
  }
  await working;
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  return {
    count: times.length + unavailable,
    answered,
    unavailable,
    wrong,
    p50: at(0.5),
    p99: at(0.99),
    max: at(1),
  };
}
