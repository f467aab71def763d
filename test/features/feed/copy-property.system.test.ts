/**
 * A client that lists once and follows the changes has the same data as the lists, after any syncs, decisions and
 * faults.
 */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deleteOrganization } from '../../../src/db/organizations.ts';
import { changeCurrency } from '../../../src/db/prices/currency.ts';
import { seedProviders } from '../../../src/db/providers.ts';
import { createToken } from '../../../src/db/tokens.ts';
import { renameUser } from '../../../src/db/users.ts';
import { pruneFeed } from '../../../src/features/feed/append-changes.ts';
import { buildApp } from '../../../src/http/app.ts';
import { mastersOf } from '../../../src/redis/redis.ts';
import { retireSource } from '../../../src/sync/runs/retire-source.ts';
import { openScene, type TestReader } from '../../snapshot/scene.ts';
import { runs } from '../../support/random.ts';
import { until } from '../../support/until.ts';
import { cluster } from '../../sync/clusters/rows.ts';
import {
  ACME,
  LAX,
  OPERATOR,
  offer,
  openScene as openSyncScene,
  region,
  type Scene as SyncScene,
} from '../../sync/scene.ts';
import { Copy } from './copy.ts';
import { ENGINES, type Engine } from './engines.ts';
import { feedPublisher } from './feed-publisher.ts';

const MACHINES = ['a/m', 'a/n', 'b/m', 'b/o'];
const KEYS = ['org/k1', 'org/k2', 'other/k1'];
const machine = fc.option(
  fc.record({
    amount: fc.constantFrom('0.06', '0.12', '0.18'),
    cpu: fc.constantFrom(2, 2, 4),
    excluded: fc.constantFrom(false, false, true),
    architecture: fc.constantFrom('x86_64', 'arm64'),
  }),
  { nil: undefined, freq: 4 },
);
const reported = fc.option(
  fc.record({ status: fc.constantFrom('Active', 'Stopped'), name: fc.constantFrom('Prod', 'Test') }),
  { nil: undefined, freq: 4 },
);
const of = <T>(keys: readonly string[], value: fc.Arbitrary<T>) =>
  fc.record(Object.fromEntries(keys.map((key) => [key, value])));
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      does: fc.constant('catalogue' as const),
      fields: of(MACHINES, machine),
      regionName: fc.constantFrom('A', 'A', 'Renamed'),
      providerName: fc.constantFrom('Acme', 'Acme', 'ACME'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('clusters' as const), fields: of(KEYS, reported) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      does: fc.constantFrom(
        'publish',
        'publish twice at once',
        'compare',
        'flush',
        'cut the cache',
        'fall behind',
        'catch up',
        'forget',
        'retire',
        'currency',
        'rename a person',
        'begin',
        'begin during a change',
        'follow',
      ),
      limit: fc.constantFrom(1, 2, 100),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** The world of one run of the property. */
async function openWorld(stack: AsyncDisposableStack, engine: Engine, syncs: SyncScene) {
  await engine.catchUp();
  await syncs.reset();
  const scene = stack.use(await openScene(engine.redis, syncs.db));
  const publisher = feedPublisher(scene.store.db, scene.cache);
  const organization = await syncs.organization('org');
  await syncs.organization('other');
  await seedProviders(syncs.store.db, [ACME]);
  const { token } = await createToken(scene.store.db, {
    organizationId: organization,
    scopes: ['machines:read', 'clusters:read'],
  });
  await publisher.publishDirty();
  /** Opens a client with a separate server. */
  const serve = (read: TestReader): (() => Copy) => {
    const app = buildApp({
      ...read,
      readiness: async () => ({ ready: true, checks: {} }),
      logger: false,
      version: '0.0.0',
    });
    stack.defer(() => app.close());
    const headers = { authorization: `Bearer ${token}`, host: 'test' };
    return () =>
      new Copy(async (path) => {
        const { statusCode: status, body } = await app.inject({ path, headers });
        return { status, body };
      });
  };
  const reader = scene.reader({ ...engine.reader, blockMs: 50 });
  const copy = serve(reader);
  const copies: Copy[] = [];
  /** Returns the lists, once the reader has every version: the cache may be a moment behind. */
  const listed = async () => {
    await engine.catchUp();
    // A new reader has only the data of PostgreSQL.
    const truth = serve(scene.reader({ redisUrl: 'redis://127.0.0.1:1' }))();
    await truth.list();
    const given = copy();
    await until(async () => {
      await given.list();
      return isDeepStrictEqual(given.state, truth.state);
    });
    return truth.state;
  };
  return { engine, syncs, scene, publisher, organization, copy, listed, currency: 'USD', copies };
}
type World = Awaited<ReturnType<typeof openWorld>>;

async function take(world: World, taken: Step): Promise<void> {
  const { engine, syncs, publisher, scene, copies } = world;
  switch (taken.does) {
    case 'catalogue': {
      const { fields, regionName, providerName } = taken;
      const items = MACHINES.flatMap((key) => {
        const [code = '', name = ''] = key.split('/');
        const one = fields[key];
        if (!one) return [];
        const { amount, cpu, excluded, architecture } = one;
        return [
          offer(code, name, {
            amount,
            cpu,
            facts: { architecture },
            ...(excluded ? { excluded: 'unavailable' } : {}),
          }),
        ];
      });
      await syncs.catalogue([region('a', regionName), region('b'), ...items, offer('b', 'always')], {
        limits: LAX,
        provider: { id: 77, name: providerName },
        currency: world.currency,
        rates: { EUR: '1', USD: '2' },
      });
      return;
    }
    case 'clusters': {
      const items = KEYS.flatMap((key) => {
        const [organization = '', name = ''] = key.split('/');
        const one = taken.fields[key];
        return one ? [cluster(name, { organization, ...one })] : [];
      });
      await syncs.clusters([...items, cluster('always')], {
        limits: LAX,
        currency: world.currency,
        rates: { EUR: '1', USD: '2' },
      });
      return;
    }
    case 'publish':
      await publisher.publishDirty();
      return;
    case 'publish twice at once':
      await Promise.all([publisher, feedPublisher(scene.store.db, scene.cache)].map((p) => p.publishDirty()));
      return;
    case 'compare':
      await publisher.compare();
      return;
    case 'flush':
      for (const master of mastersOf(scene.cache)) await master.flushall();
      return;
    case 'cut the cache':
      engine.cut();
      return;
    case 'fall behind':
      engine.fallBehind();
      return;
    case 'catch up':
      await engine.catchUp();
      return;
    case 'forget':
      // Lists are at most seconds old, deleted changes are days old.
      await publisher.publishDirty();
      await world.listed();
      await syncs.sql`update feed_changes set at = at - interval '8 days'`;
      await pruneFeed(syncs.store.db, 7);
      return;
    case 'retire':
      await retireSource(syncs.store, 'acme', syncs.now().toISOString(), OPERATOR);
      return;
    case 'currency': {
      await using connection = syncs.store.connection();
      world.currency = world.currency === 'USD' ? 'EUR' : 'USD';
      const factor = world.currency === 'USD' ? 1 : 2;
      await changeCurrency(
        connection.db,
        world.currency,
        ({ amount, per }) => ((Number(amount) * factor) / (per === 'hour' ? 60 : 1)).toFixed(9),
        { terms: () => null, regionPrices: () => null },
      );
      return;
    }
    case 'rename a person':
      await renameUser(syncs.store.db, world.organization, 1, { firstName: 'Grace', lastName: 'Hopper' });
      return;
    case 'begin':
      copies.push(await world.copy().begin());
      return;
    case 'begin during a change': {
      const changing = syncs
        .catalogue([region('a'), region('b'), offer('b', 'always', { amount: '0.24' })], {
          limits: LAX,
          currency: world.currency,
          rates: { EUR: '1', USD: '2' },
        })
        .then(() => publisher.publishDirty());
      copies.push(await world.copy().begin());
      await changing;
      return;
    }
    case 'follow':
      for (const copy of copies) await copy.follow(taken.limit);
  }
}

/** No run begins after this many milliseconds. */
const ENOUGH_MS = 15_000;

describe.each(Object.entries(ENGINES))('with %s', (_, open) => {
  const closing = new AsyncDisposableStack();
  afterAll(() => closing.disposeAsync());
  let engine: Engine;
  let syncs: SyncScene;
  beforeAll(async () => {
    engine = await open(closing);
    syncs = closing.use(await openSyncScene(engine.db));
  });

  it('a copy equals the lists', async () => {
    const begun = performance.now();
    let done = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 30, size: 'max' }), async (steps) => {
        // A busy machine makes fewer done. Each run is complete.
        if (done > 0 && performance.now() - begun > ENOUGH_MS) return;
        done += 1;
        await using stack = new AsyncDisposableStack();
        const world = await openWorld(stack, engine, syncs);
        world.copies.push(await world.copy().begin());
        for (const taken of steps) await take(world, taken);
        await world.publisher.publishDirty();
        const [unpublished] = await syncs.sql`
          select (select count(*)::int from regions where told_version < version and organization_id is null) as regions,
            (select count(*)::int from organizations where told_version < clusters_version) as organizations`;
        expect(unpublished).toEqual({ regions: 0, organizations: 0 });
        const truth = await world.listed();
        for (const copy of world.copies) expect((await copy.follow()).state).toEqual(truth);
        await deleteOrganization(syncs.store.db, 'org');
        await world.publisher.publishDirty();
        await until(async () => world.copies[0]?.isRefused());
      }),
      { numRuns: runs(6) },
    );
  }, 240_000);
});
