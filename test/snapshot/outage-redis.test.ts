import { performance } from 'node:perf_hooks';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createToken } from '../../src/db/tokens.ts';
import type { Answer } from '../../src/snapshot/document/answer.ts';
import { until } from '../support/until.ts';
import { reprice } from './rows.ts';
import { sceneForEachTest, TestClock, type TestReader } from './scene.ts';

const scene = sceneForEachTest({ redis: 'of the test' });

let token: string;

beforeEach(async () => {
  const organizationId = scene.sample.a;
  ({ token } = await createToken(scene.store.db, { organizationId, scopes: ['clusters:read'] }));
  await scene.publisher.publishDirty();
});

/** Reads all documents of the contract: body and hash of each, and the longest read in milliseconds. */
async function everything(reader: TestReader): Promise<{ answers: unknown; longest: number }> {
  let longest = 0;
  const timed = async <T>(work: T | Promise<T>): Promise<T> => {
    const start = performance.now();
    const result = await work;
    longest = Math.max(longest, performance.now() - start);
    return result;
  };
  const answers: (Answer | undefined)[] = [
    await timed(reader.catalogue.providers()),
    await timed(reader.catalogue.machines(scene.sample.provider, scene.sample.region)),
    await timed(reader.catalogue.machines(scene.sample.provider, scene.sample.emptyRegion)),
    await timed(reader.catalogue.machines(77, 77)),
    await timed(reader.catalogue.machine(scene.sample.small)),
    await timed(reader.catalogue.machine(scene.sample.gpu)),
    await timed(reader.catalogue.machine(987_654)),
    await timed(reader.clusters.clusters(scene.sample.a)),
    await timed(reader.clusters.cluster(scene.sample.a, 'cluster-test')),
    await timed(reader.clusters.cluster(scene.sample.b, 'cluster-test')),
    await timed(reader.clusters.cluster(scene.sample.a, 'none')),
  ];
  const grant = await timed(reader.tokens.verify(token));
  const bodies = answers.map((answer) => answer && [answer.body.identity.toString(), answer.body.hash]);
  return { answers: [...bodies, grant], longest };
}

async function linked(reader: TestReader): Promise<TestReader> {
  await until(async () => (await reader.catalogue.providers()) && reader.link.linked);
  return reader;
}

it('memory and price histories get old although the wall clock goes back an hour', async () => {
  const reader = await linked(scene.reader());
  const { small } = scene.sample;
  const shown = async () => {
    const [machine, history] = [
      await reader.catalogue.machine(small),
      await reader.catalogue.machinePrices(small),
    ];
    const [newest] = JSON.parse(history?.body.identity.toString() ?? '[]') as { price: number }[];
    return [JSON.parse(machine?.body.identity.toString() ?? '{}').price, newest?.price];
  };
  await shown();
  await scene.redis.kill();
  await until(() => !reader.link.linked);
  const clock = Date.now;
  vi.spyOn(Date, 'now').mockImplementation(() => clock() - 3_600_000);
  try {
    await scene.sql`
      insert into machine_prices (machine_id, valid_from, price, source_amount, source_per, source_currency)
      values (${small}, now(), 0.25, 15, 'hour', 'USD')`;
    await reprice(scene.sql, small, '0.25');
    await expect.poll(shown, { timeout: 20_000 }).toEqual([0.25, 0.25]);
  } finally {
    vi.restoreAllMocks();
  }
});

const outages: [string, () => Promise<void> | void][] = [
  ['is killed', () => scene.redis.kill()],
  ['hangs', () => scene.redis.pause()],
  ['starts again empty', () => scene.redis.restart()],
  ['is flushed', async () => void (await scene.cache.flushall())],
];

describe.each(outages)('when the cache %s', (_, strike) => {
  it('a warm and a cold reader give the same answers, each in less than a second', async () => {
    const warm = await linked(scene.reader());
    const cold = await linked(scene.reader());
    const before = await everything(warm);
    await strike();
    for (const reader of [warm, cold]) {
      for (let round = 0; round < 3; round++) {
        const { answers, longest } = await everything(reader);
        expect(answers).toEqual(before.answers);
        expect(longest).toBeLessThan(round === 0 ? 4000 : 900);
      }
    }
    scene.redis.resume();
  });

  it('a reader that starts then answers the same', async () => {
    const before = await everything(await linked(scene.reader()));
    await strike();
    const late = scene.reader();
    const { answers, longest } = await everything(late);
    expect(answers).toEqual(before.answers);
    expect(longest).toBeLessThan(4000);
    scene.redis.resume();
  });
});

describe('while the cache is away', () => {
  it('a change in Postgres is visible within a second', async () => {
    const clock = new TestClock();
    const reader = await linked(scene.reader({ now: clock.now }));
    const price = async () => {
      const { body } = await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
      return JSON.parse(body.identity.toString()).map((machine: { price: number }) => machine.price);
    };
    expect(await price()).toEqual([0.0001, 0.01]);
    await scene.redis.kill();
    await until(() => !reader.link.linked);
    await reprice(scene.sql, scene.sample.small, '0.5');
    clock.forward(1001);
    expect(await price()).toEqual([0.01, 0.5]);
  });

  it('memory is compared by version, not read again', async () => {
    const clock = new TestClock();
    const reader = await linked(scene.reader({ now: clock.now }));
    const first = await reader.documents.get({ kind: 'region', regionId: scene.sample.region });
    await scene.redis.kill();
    await until(() => !reader.link.linked);
    clock.forward(1001);
    const second = await reader.documents.get({ kind: 'region', regionId: scene.sample.region });
    expect(second.document).toBe(first.document);
  });

  it('a hanging cache gets a few requests, and then none for a moment', async () => {
    const reader = await linked(scene.reader());
    scene.redis.pause();
    await until(() => !reader.link.linked, { timeoutMs: 5000 });
    const start = performance.now();
    for (let i = 0; i < 30; i++) await reader.clusters.clusters(2000 + i);
    // Thirty misses: without the breaker, each would wait for 50 ms.
    expect(performance.now() - start).toBeLessThan(3000);
    scene.redis.resume();
  });
});

describe('when the cache is back', () => {
  it.each([
    ['after a crash, empty', () => scene.redis.kill(), () => scene.redis.restart(), 1],
    ['after a hang', () => scene.redis.pause(), () => scene.redis.resume(), 0],
  ])('%s, readers link to it and receive changes within moments', async (_, strike, heal, losses) => {
    const reader = await linked(scene.reader());
    const name = { kind: 'region', regionId: scene.sample.region } as const;
    await reader.documents.get(name);
    await strike();
    await until(() => !reader.link.linked, { timeoutMs: 5000 });
    const { epoch } = reader.link;
    await heal();
    await until(() => reader.link.linked, { timeoutMs: 5000 });
    expect(Number(reader.link.epoch > epoch)).toBe(losses);
    await until(() => scene.cache.status === 'ready');
    await scene.publisher.compare();
    const version = await reprice(scene.sql, scene.sample.small, '0.6');
    await scene.publisher.publishDirty();
    const start = performance.now();
    await until(async () => (await reader.documents.get(name)).document?.version === version);
    expect(performance.now() - start).toBeLessThan(900);
    const fresh = await linked(scene.reader());
    expect((await fresh.documents.get(name)).tier).toBe('redis');
  });
});

describe('a reader that starts while the cache is away', () => {
  it('answers many concurrent clients that share one address', async () => {
    const reached = 400;
    const organizations = await scene.sql<{ id: number }[]>`
      insert into organizations (slug, name)
      select 'many-' || i, 'Many' from generate_series(1, ${reached}::integer) as i returning id`;
    const tokens = await Promise.all(
      organizations.map(({ id: organizationId }) =>
        createToken(scene.store.db, { organizationId, scopes: ['clusters:read'] }),
      ),
    );
    await scene.redis.kill();
    // The limits count reads. A busy machine may need long for 800 of them.
    const late = scene.reader({ postgresDeadlineMs: 60_000 });
    const grants = await Promise.all(tokens.map((each) => late.tokens.verify(each.token, () => '192.0.2.1')));
    expect(grants.map((grant) => grant?.organizationId)).toEqual(organizations.map(({ id }) => id));
    const clusters = await Promise.all(organizations.map(({ id }) => late.clusters.clusters(id)));
    expect(new Set(clusters.map(({ tier }) => tier))).toEqual(new Set(['postgres']));
  });
});
