/** Whatever is synced, decided and broken: whoever lists once and follows the changes has what the lists say. */
import fc from 'fast-check';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { changeCurrency } from '../../src/db/queries/currency.ts';
import { deleteOrganization } from '../../src/db/queries/organizations.ts';
import { seedProviders } from '../../src/db/queries/providers.ts';
import { retireSource } from '../../src/db/queries/retire.ts';
import { createToken } from '../../src/db/queries/tokens.ts';
import { renameUser } from '../../src/db/queries/users.ts';
import { FeedPublisher } from '../../src/feed/feed-publisher.ts';
import { buildApp } from '../../src/http/app.ts';
import { openScene } from '../snapshot/scene.ts';
import { type FaultProxy, faultProxy } from '../support/fault-proxy.ts';
import { startTestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { cluster } from '../sync/cluster-rows.ts';
import {
  ACME,
  LAX,
  OPERATOR,
  offer,
  openScene as openSyncScene,
  region,
  type Scene as SyncScene,
} from '../sync/scene.ts';
import { Copy } from './copy.ts';

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
      said: of(MACHINES, machine),
      regionName: fc.constantFrom('A', 'A', 'Renamed'),
      providerName: fc.constantFrom('Acme', 'Acme', 'ACME'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('clusters' as const), said: of(KEYS, reported) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      does: fc.constantFrom(
        'publish',
        'publish twice at once',
        'sweep',
        'flush',
        'cut the cache',
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

const closing = new AsyncDisposableStack();
afterAll(() => closing.disposeAsync());
let syncs: SyncScene;
let redis: { readonly url: string };
let proxy: FaultProxy;
beforeAll(async () => {
  syncs = closing.use(await openSyncScene());
  redis = closing.use(await startTestRedis());
  proxy = closing.use(await faultProxy(redis.url));
});

/** A world of one run of the property: everything as new, and a reader whose way to the cache may be cut. */
async function openWorld(stack: AsyncDisposableStack) {
  await syncs.reset();
  const scene = stack.use(await openScene(redis, syncs.db));
  const publisher = new FeedPublisher(scene.store.db, scene.cache);
  const organization = await syncs.organization('org');
  await syncs.organization('other');
  await seedProviders(syncs.store.db, [ACME]);
  const { token } = await createToken(scene.store.db, {
    organizationId: organization,
    scopes: ['machines:read', 'clusters:read'],
  });
  await publisher.publishDirty();
  const reader = scene.reader({ redisUrl: proxy.url, pollMs: 50 });
  const app: FastifyInstance = buildApp({
    ...reader,
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '0.0.0',
  });
  stack.defer(() => app.close());
  return { scene, publisher, organization, token, app, reader, currency: 'USD', copies: [] as Copy[] };
}
type World = Awaited<ReturnType<typeof openWorld>>;

async function take(world: World, taken: Step): Promise<void> {
  const { publisher, scene, copies } = world;
  switch (taken.does) {
    case 'catalogue': {
      const { said, regionName, providerName } = taken;
      const items = MACHINES.flatMap((key) => {
        const [code = '', name = ''] = key.split('/');
        const one = said[key];
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
        const one = taken.said[key];
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
      await Promise.all(
        [publisher, new FeedPublisher(scene.store.db, scene.cache)].map((p) => p.publishDirty()),
      );
      return;
    case 'sweep':
      await publisher.sweep();
      return;
    case 'flush':
      await scene.cache.flushall();
      return;
    case 'cut the cache':
      proxy.cut();
      return;
    case 'retire':
      await retireSource(syncs.store, 'acme', syncs.now().toISOString(), OPERATOR);
      return;
    case 'currency': {
      await using session = syncs.store.session();
      world.currency = world.currency === 'USD' ? 'EUR' : 'USD';
      const factor = world.currency === 'USD' ? 1 : 2;
      await changeCurrency(session.db, world.currency, ({ amount, per }) =>
        ((Number(amount) * factor) / (per === 'hour' ? 60 : 1)).toFixed(9),
      );
      return;
    }
    case 'rename a person':
      await renameUser(syncs.store.db, world.organization, 1, { firstName: 'Grace', lastName: 'Hopper' });
      return;
    case 'begin':
      copies.push(await new Copy(world.app, world.token).begin());
      return;
    case 'begin during a change': {
      const changing = syncs
        .catalogue([region('a'), region('b'), offer('b', 'always', { amount: '0.24' })], {
          limits: LAX,
          currency: world.currency,
          rates: { EUR: '1', USD: '2' },
        })
        .then(() => publisher.publishDirty());
      copies.push(await new Copy(world.app, world.token).begin());
      await changing;
      return;
    }
    case 'follow':
      for (const copy of copies) await copy.follow(taken.limit);
  }
}

it('a copy is what the lists say', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 30, size: 'max' }), async (steps) => {
      await using stack = new AsyncDisposableStack();
      const world = await openWorld(stack);
      world.copies.push(await new Copy(world.app, world.token).begin());
      for (const taken of steps) await take(world, taken);
      await world.publisher.publishDirty();
      await until(() => world.reader.link.linked);
      const [untold] = await syncs.sql`
        select (select count(*)::int from regions where told_version < version and organization_id is null) as regions,
          (select count(*)::int from organizations where told_version < clusters_version) as organizations`;
      expect(untold).toEqual({ regions: 0, organizations: 0 });
      const truth = new Copy(world.app, world.token);
      await truth.list();
      for (const copy of world.copies) expect((await copy.follow()).state).toEqual(truth.state);
      await deleteOrganization(syncs.store.db, 'org');
      await world.publisher.publishDirty();
      await world.copies[0]?.get('/v1/changes', 401);
    }),
    { numRuns: 8, interruptAfterTimeLimit: 20_000, markInterruptAsFailure: false },
  );
}, 120_000);
