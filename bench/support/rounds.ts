/** One round: the yardstick and the three kinds of sync, one right after the other on the same database. */
import type { Redis } from 'ioredis';
import type { CatalogueShape } from './catalogue.ts';
import { runWorker } from './child.ts';
import { type Effects, watchEffects } from './effects.ts';
import type { Database } from './servers.ts';
import type { Measured } from './worker.ts';
import { bareCopy, keepRows } from './yardstick.ts';

export interface Step {
  readonly measured: Measured;
  readonly effects: Effects;
}

export interface Round {
  /** Seconds of the bare COPY, before and after the syncs that follow the first. */
  readonly copies: readonly number[];
  /** Seconds of the COPY into tables that have the schema's foreign keys as well. */
  readonly copyWithForeignKeys: number | undefined;
  readonly first: Step;
  readonly unchanged: Step;
  readonly changed: Step;
}

export interface RoundOptions {
  readonly database: Database;
  readonly redis: Redis;
  readonly redisUrl: string;
  readonly offers: number;
  readonly edition: number;
  /** True measures the COPY with foreign keys as well. */
  readonly foreignKeys: boolean;
  readonly say: (line: string) => void;
}

export async function runRound(options: RoundOptions): Promise<Round> {
  const { database, redis, redisUrl, offers, edition, say } = options;
  const { sql } = database;
  const sync = async (what: string, shape: CatalogueShape): Promise<Step> => {
    await sql`checkpoint`;
    const effects = await watchEffects(sql, redis);
    const measured = await runWorker({ what: 'sync', databaseUrl: database.url, redisUrl, shape }, process.env.NODE_ARGS?.split(' '));
    say(
      `${what} sync ${measured.sync?.seconds.toFixed(2)} s, publishing ${measured.publish.seconds.toFixed(2)} s`,
    );
    return { measured, effects: await effects() };
  };
  const copy = async (foreignKeys = false) => {
    const seconds = await bareCopy(sql, foreignKeys);
    say(`COPY${foreignKeys ? ' with foreign keys' : ''} ${seconds.toFixed(2)} s`);
    return seconds;
  };

  const first = await sync('first', { offers, edition: 0 });
  await keepRows(sql);
  const before = await copy();
  // As autovacuum does in the hour between two syncs.
  await sql`vacuum (analyze) machines, machine_prices, regions`;
  const unchanged = await sync('unchanged', { offers, edition: 0 });
  const changed = await sync('1 % changed', { offers, edition });
  const after = await copy();
  const copyWithForeignKeys = options.foreignKeys ? await copy(true) : undefined;
  return { copies: [before, after], copyWithForeignKeys, first, unchanged, changed };
}
