/** One round: the three kinds of sync, and the yardstick between them, on one database. */
import type { Redis } from 'ioredis';
import type { Database } from '../support/servers.ts';
import type { CatalogueShape } from './catalogue.ts';
import { runWorker } from './child.ts';
import { type Effects, watchEffects } from './effects.ts';
import type { Measured } from './worker.ts';
import { bareCopy, keepRows } from './yardstick.ts';

export interface Step {
  readonly measured: Measured;
  readonly effects: Effects;
}

export interface Syncs {
  readonly first: Step;
  readonly unchanged: Step;
  /** 1 % of the offers have another price. */
  readonly changed: Step;
}

export interface Round extends Syncs {
  /** Seconds of the bare COPY: the mean of one before and one after the two syncs of stored data. */
  readonly copy: number;
}

export interface RoundOptions {
  readonly database: Database;
  readonly redis: Redis;
  readonly redisUrl: string;
  readonly offers: number;
  /** The number of the changed hundredth. */
  readonly edition: number;
  /** See `CatalogueShape`. */
  readonly terms?: boolean;
  readonly say: (line: string) => void;
}

/** @param keep whether the rows for the yardstick must be written first */
export async function runRound(options: RoundOptions, keep: boolean): Promise<Round> {
  const { sql } = options.database;
  const copies: number[] = [];
  const copy = async () => {
    const seconds = await bareCopy(sql);
    options.say(`bare COPY ${seconds.toFixed(2)} s`);
    copies.push(seconds);
  };
  const syncs = await runSyncs(options, async () => {
    if (keep) await keepRows(sql);
    await copy();
  });
  await copy();
  return { ...syncs, copy: copies.reduce((sum, seconds) => sum + seconds, 0) / copies.length };
}

/** @param afterFirst runs between the first sync and the next one */
export async function runSyncs(
  options: RoundOptions,
  afterFirst: () => Promise<void> = async () => {},
): Promise<Syncs> {
  const { database, redis, redisUrl, offers, edition, terms = false, say } = options;
  const { sql, url } = database;
  const sync = async (what: string, shape: CatalogueShape): Promise<Step> => {
    await sql`checkpoint`;
    const effects = await watchEffects(sql, redis);
    const measured = await runWorker({ what: 'sync', databaseUrl: url, redisUrl, shape });
    const { sync: stored, publish } = measured;
    say(`${what} sync ${stored?.seconds.toFixed(2)} s, publishing ${publish.seconds.toFixed(2)} s`);
    return { measured, effects: await effects() };
  };
  const first = await sync('first', { offers, edition: 0, terms });
  await afterFirst();
  // As autovacuum does in the hour between two syncs.
  await sql`vacuum (analyze) machines, machine_prices, regions`;
  const unchanged = await sync('unchanged', { offers, edition: 0, terms });
  const changed = await sync('1 % changed', { offers, edition, terms });
  return { first, unchanged, changed };
}
