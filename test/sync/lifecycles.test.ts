import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { approveBatch, previewHeld, undoDecision } from '../../src/app/actions/batch.ts';
import { composeWorker } from '../../src/app/worker.ts';
import { readConfig } from '../../src/config/config.ts';
import { batchRecord, pendingBatches, whyHeld } from '../../src/db/held-batches.ts';
import { readCycles, storedLifecycles } from '../../src/db/lifecycles.ts';
import { sourceStatus } from '../../src/db/sources.ts';
import { previewRetirement, retireSource } from '../../src/sync/runs/retire-source.ts';
import { expectProducts, RELEASES, release } from '../sources/lifecycles/products.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { OPERATOR } from './scene.ts';

type Given = Parameters<typeof expectProducts>[1];

const versions = (count: number, end: string) =>
  Array.from({ length: count }, (_, i) => release(String(i + 10), end));
const TEN = { postgresql: versions(20, '2028-01-01') };
/** All products have one cycle, and PostgreSQL has these. */
const ALL = Object.keys(RELEASES).length - 1 + TEN.postgresql.length;

async function scene() {
  const closing = new AsyncDisposableStack();
  const database = closing.use(await createDatabase());
  const sites = closing.use(new AsyncDisposableStack());
  let url = 'http://127.0.0.1:1';
  const configOf = () =>
    readConfig({
      DATABASE_URL: database.url,
      REDIS_URL: 'redis://127.0.0.1:1',
      LIFECYCLES_URL: `${url}/api/v1`,
    });
  const worker = closing.use(composeWorker(configOf(), pino({ level: 'silent' })));
  const source = () => configOf().sources[0] ?? expect.unreachable('no source');
  return {
    worker,
    source,
    config: configOf,
    async run(given: Given) {
      const upstream = sites.use(await fakeUpstream());
      expectProducts(upstream, given);
      ({ url } = upstream);
      return await worker.runSource(source());
    },
    cycles: () => readCycles(worker.store.db),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

describe('the source of release cycles', () => {
  it('exists only if its address is set', () => {
    const env = { CLUSTERS_URL: 'http://x/clusters' };
    expect(readConfig(env).sources.map(({ kind }) => kind)).not.toContain('lifecycles');
    const { sources } = readConfig({ ...env, LIFECYCLES_URL: 'http://x/v1', LIFECYCLES_MAX_AGE: '60' });
    expect(sources.find(({ kind }) => kind === 'lifecycles')).toMatchObject({
      ...{ id: 'lifecycles', url: 'http://x/v1', schedule: '50 4 * * *', maxAge: 60 },
    });
    expect(() => readConfig({ LIFECYCLES_URL: 'ftp://x' })).toThrow(
      /LIFECYCLES_URL must be a URL that starts with http/,
    );
    expect(() => readConfig({ LIFECYCLES_URL: 'http://x', LIFECYCLES_SCHEDULE: 'daily' })).toThrow(
      /the schedule of source "lifecycles"/,
    );
  });

  it('stores new, changed and missing cycles, and counts them', async () => {
    await using here = await scene();
    expect(await here.run(TEN)).toMatchObject({ outcome: 'changed', counts: { seen: ALL, added: ALL } });
    expect((await storedLifecycles(here.worker.store.db)).readAt).toMatch(/Z$/);
    expect(await here.run(TEN)).toMatchObject({ outcome: 'unchanged', counts: { added: 0, changed: 0 } });
    const [first, second, ...rest] = TEN.postgresql;
    const moved = { ...second, eolFrom: '2029-02-03', latest: { name: '11.10' } };
    expect(first).toBeDefined();
    expect(await here.run({ postgresql: [moved, ...rest, release('40', null)] })).toMatchObject({
      outcome: 'changed',
      counts: { seen: ALL, added: 1, changed: 1, retired: 1 },
    });
    const stored = (await here.cycles()).filter(({ engine }) => engine === 'postgresql');
    expect(stored.map(({ name }) => name)).toEqual([...rest.map((each) => each.name), '11', '40'].sort());
    expect(stored.find(({ name }) => name === '11')).toEqual({
      ...{ engine: 'postgresql', name: '11', releasedOn: '2020-01-02', activeUntil: null },
      ...{ endOfLife: '2029-02-03', hasEnded: false, extendedUntil: null, latest: '11.10' },
    });
    expect(await sourceStatus(here.worker.store.db)).toMatchObject([
      { id: 'lifecycles', kind: 'lifecycles', counted: 'release cycles', known: ALL, published: ALL },
    ]);
  });

  it('keeps the last values of an unusable release, and of all if one product cannot be read', async () => {
    await using here = await scene();
    await here.run(TEN);
    const before = await here.cycles();
    const [first, ...rest] = TEN.postgresql;
    const bad = { ...first, eolFrom: 'soon' };
    expect(await here.run({ postgresql: [bad, ...rest] })).toMatchObject({
      outcome: 'unchanged',
      counts: { rejected: 1, retired: 0 },
      rejected: [{ key: 'postgresql 10', reason: expect.stringContaining('eolFrom') }],
    });
    // Without a name, the row may be any cycle of its engine.
    expect(await here.run({ postgresql: [{ ...first, name: '' }, ...rest] })).toMatchObject({
      outcome: 'unchanged',
      counts: { rejected: 1, retired: 0 },
    });
    expect(await here.run({ postgresql: [first, first, ...rest] })).toMatchObject({
      outcome: 'unchanged',
      rejected: [{ key: 'postgresql 10', code: 'duplicate' }],
    });
    await expect(here.run({ valkey: { result: {} } })).rejects.toMatchObject({ kind: 'invalid' });
    expect(await here.cycles()).toEqual(before);
  });

  it('stores the first ends of many releases without an operator', async () => {
    await using here = await scene();
    await here.run({ postgresql: TEN.postgresql.map((each) => ({ ...each, eolFrom: null })) });
    expect(await here.run(TEN)).toMatchObject({ outcome: 'changed', counts: { changed: 20 }, broken: [] });
  });

  it('holds a batch that removes many or moves many ends, for an operator who can undo the decision', async () => {
    await using here = await scene();
    await here.run(TEN);
    const before = await here.cycles();
    const { store } = here.worker;
    const other = { postgresql: versions(20, '2031-01-01') };
    expect(await here.run(other)).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'redated', detail: expect.stringMatching(/^20 of 29 known rows have another end/) }],
    });
    expect(await here.run({ postgresql: versions(2, '2028-01-01') })).toMatchObject({
      outcome: 'held',
      broken: [{ guard: 'removed' }],
    });
    expect(await here.cycles()).toEqual(before);
    await here.run(other);
    const [batch] = await pendingBatches(store.db);
    const { id } = batch ?? expect.unreachable('no batch');
    expect(whyHeld(batch ?? expect.unreachable('no batch'))).toMatch(
      /^other releases of postgresql: a new policy, or a broken list\? 20 of 29 known rows have another end \([^)]+\)$/,
    );
    expect(await previewHeld(here.config(), store, here.source(), id, 2)).toMatchObject({
      kind: 'lifecycles',
      diff: { known: ALL, changed: 20, added: 0, missing: 0 },
      totals: { gone: 0, changed: 20, new: 0 },
      organizations: [{ organization: 'postgresql', changed: 20 }],
      rows: [
        {
          ...{ change: 'changed', organization: 'postgresql', name: '10' },
          fields: [{ field: 'end_of_life', before: '2028-01-01', after: '2031-01-01' }],
        },
        { name: '11' },
      ],
    });
    const writing = here.worker;
    expect(await approveBatch(here.config(), writing, here.source(), id, OPERATOR)).toMatchObject({
      counts: { changed: 20 },
    });
    const ends = async () => new Set((await here.cycles()).map(({ endOfLife }) => endOfLife));
    expect(await ends()).toEqual(new Set(['2028-01-01', '2031-01-01']));
    const decided = (await batchRecord(store.db, id)) ?? expect.unreachable('no batch');
    await undoDecision(here.config(), writing, decided, here.source, OPERATOR);
    expect(await here.cycles()).toEqual(before);
  });

  it('is never emptied by an answer without a usable release', async () => {
    await using here = await scene();
    await here.run(TEN);
    const bad = Object.fromEntries(Object.keys(RELEASES).map((name) => [name, [{ name: 'x' }]]));
    expect(await here.run(bad)).toMatchObject({
      outcome: 'held',
      broken: expect.arrayContaining([expect.objectContaining({ guard: 'empty' })]),
    });
    expect(await here.cycles()).toHaveLength(ALL);
  });

  it('can be retired with its cycles', async () => {
    await using here = await scene();
    await here.run(TEN);
    const { store } = here.worker;
    expect(await previewRetirement(store.db, 'lifecycles')).toMatchObject({
      kind: 'lifecycles',
      counted: 'release cycles',
      places: expect.arrayContaining([{ place: 'postgresql', known: 20, published: 20 }]),
    });
    await retireSource(store, 'lifecycles', new Date().toISOString(), OPERATOR);
    expect(await here.cycles()).toEqual([]);
    expect((await storedLifecycles(store.db)).readAt).toBeNull();
  });
});
