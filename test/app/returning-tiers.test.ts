/** Readers that start while some of their servers are away, which return one after the other, in each order. */
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { composeReader, type Reader } from '../../src/app/reader.ts';
import { readConfig } from '../../src/config/config.ts';
import { createToken } from '../../src/db/tokens.ts';
import { type Answer, Unavailable } from '../../src/snapshot/document/answer.ts';
import { startHeartbeat } from '../../src/snapshot/publish/publisher.ts';
import { reprice } from '../snapshot/rows.ts';
import { sceneForEachTest } from '../snapshot/scene.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';

const scene = sceneForEachTest();
const silent = pino({ level: 'silent' });

const TIERS = ['cache', 'queue', 'database'] as const;
type TierName = (typeof TIERS)[number];

function orders(left: readonly TierName[]): TierName[][] {
  return [
    [],
    ...left.flatMap((first) => orders(left.filter((each) => each !== first)).map((rest) => [first, ...rest])),
  ];
}

interface World {
  readonly reader: Reader;
  readonly ways: Record<TierName, FaultProxy>;
  /** Stopped servers, in the order of their restart. */
  readonly away: readonly TierName[];
}

let token: string;

/** Reads everything; each answer must be correct or Unavailable. @returns the number of answers and of reads */
async function readAll(
  { reader }: World,
  truth: readonly string[],
): Promise<[answered: number, reads: number]> {
  const { provider, region, small, a } = scene.sample;
  const text = async (answer: Promise<Answer | undefined> | Answer | undefined) =>
    (await answer)?.body.identity.toString();
  const questions = [
    async () => text(reader.catalogue.providers()),
    async () => text(reader.catalogue.machines(provider, region)),
    async () => text(reader.catalogue.machine(small)),
    async () => text(reader.clusters.clusters(a)),
    async () => JSON.stringify(await reader.tokens.verify(token)),
  ];
  let answered = 0;
  await Promise.all(
    questions.map(async (question, i) => {
      try {
        expect(truth).toContain(`${i} ${await question()}`);
        answered += 1;
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
      }
    }),
  );
  return [answered, questions.length];
}

it('a reader that starts without any of them answers with the others’ data, is ready only then, and needs no restart', {
  timeout: 240_000,
}, async () => {
  ({ token } = await createToken(scene.store.db, {
    organizationId: scene.sample.a,
    scopes: ['machines:read', 'clusters:read'],
  }));
  await scene.publisher.publishDirty();
  await using opened = new AsyncDisposableStack();
  opened.use(startHeartbeat(() => scene.publisher.heartbeat(), 100));
  const queue = opened.use(await startTestRedis());
  const open = async (away: readonly TierName[]): Promise<World> => {
    const way = async (url: string) => opened.use(await faultProxy(url));
    const ways = {
      cache: await way(scene.redis.url),
      queue: await way(queue.url),
      database: await way(scene.db.url),
    };
    for (const each of away) await ways[each].refuse();
    const settings = {
      DATABASE_URL: ways.database.url,
      CACHE_REDIS_URL: ways.cache.url,
      QUEUE_REDIS_URL: ways.queue.url,
    };
    const reader = opened.use(await composeReader(readConfig(settings), silent));
    return { reader, ways, away };
  };

  const whole = await open([]);
  const all = async ({ reader }: World) => {
    const { provider, region, small, a } = scene.sample;
    const answers = [
      await reader.catalogue.providers(),
      await reader.catalogue.machines(provider, region),
      await reader.catalogue.machine(small),
      await reader.clusters.clusters(a),
    ];
    const grant = JSON.stringify(await reader.tokens.verify(token));
    return [...answers.map((answer) => answer?.body.identity.toString()), grant].map(
      (text, i) => `${i} ${text}`,
    );
  };
  const truth = await all(whole);
  const worlds = await Promise.all(orders(TIERS).map(open));
  expect(worlds).toHaveLength(16);

  await Promise.all(
    worlds.map(async (world) => {
      const away = new Set<TierName>(world.away);
      for (const next of [...world.away, undefined]) {
        const isServed = !(away.has('cache') && away.has('database'));
        // A reader without any tier answers 503. With one tier it answers, at the latest once it notices the loss.
        if (!isServed) {
          expect(await readAll(world, [])).toEqual([0, 5]);
          expect((await world.reader.readiness()).ready).toBe(false);
        } else {
          await until(async () => (await readAll(world, truth))[0] === 5, { everyMs: 50 });
          expect((await world.reader.readiness()).ready).toBe(true);
        }
        if (next === undefined) break;
        await world.ways[next].heal();
        away.delete(next);
      }
    }),
  );

  // All servers are back: each reader receives changes and returns nothing older.
  for (const { reader } of worlds)
    await until(async () => (await reader.readiness()).checks.cache === 'ok', { everyMs: 50 });
  await reprice(scene.sql, scene.sample.small, '0.75');
  await scene.publisher.publishDirty();
  await until(async () => (await all(whole))[2]?.includes('0.75'), { everyMs: 20 });
  const later = await all(whole);
  for (const world of worlds) {
    await until(
      async () =>
        (await readAll(world, [...truth, ...later]))[0] === 5 && (await all(world)).join() === later.join(),
      {
        everyMs: 20,
      },
    );
    expect((await world.reader.catalogue.providers()).tier).toBe('memory');
  }
});
