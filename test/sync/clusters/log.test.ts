/** The history of cluster changes of each run, for each organization. */
import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { deleteOrganization } from '../../../src/db/organizations.ts';
import { deleteUser } from '../../../src/db/users.ts';
import { CLUSTER_FIELDS } from '../../../src/domain/run.ts';
import {
  type ChangeScope,
  type ClusterChange,
  type ClusterState,
  clusterChanges,
} from '../../../src/features/console/queries/changes.ts';
import { sourceRuns } from '../../../src/features/console/queries/runs.ts';
import { retireSource } from '../../../src/sync/runs/retire-source.ts';
import { runs } from '../../support/random.ts';
import { LAX, OPERATOR, openScene, type Scene } from '../scene.ts';
import { cluster, disk } from './rows.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await scene.reset();
  for (const slug of ['one', 'two']) await scene.organization(slug);
});

const changesOf = (scope: ChangeScope, limit?: number, offset?: number) =>
  clusterChanges(scene.store.db, scope, { limit, ...(offset === undefined ? {} : { offset }) });
async function lastDiff() {
  const { rows } = await sourceRuns(scene.store.db, 'plane', { limit: 1 });
  const run = rows[0] ?? expect.unreachable();
  return { run, ...(await changesOf({ runId: run.id })) };
}
const ofOne = { organization: 'one' };
const ofTwo = { organization: 'two' };

describe('the diff of a run of a control plane', () => {
  it('lists each cluster with its organization and its changed fields', async () => {
    const stays = cluster('stays', ofTwo);
    await scene.clusters([cluster('moves', ofOne), cluster('goes', ofOne), stays], { limits: LAX });
    const first = await lastDiff();
    expect(first.totals).toEqual({ retired: 0, changed: 0, returned: 0, added: 3 });
    expect(first.rows.map(({ organization, slug }) => `${organization}/${slug}`)).toEqual([
      'one/goes',
      'one/moves',
      'two/stays',
    ]);
    expect(first.rows[1]).toMatchObject({
      change: 'added',
      runId: first.run.id,
      changedAt: '2026-01-01T01:00:00Z',
      source: 'plane',
      key: 'moves',
      before: null,
      after: {
        name: 'moves',
        slug: 'moves',
        provider: 'Acme',
        region: 'a',
        machine: 'unlisted 2 cpu 4 GiB',
        status: 'Active',
        shards: '1',
        replicas: '2',
        user: 'Ada Lovelace',
        disks: '100 GiB ssd at 0.001 USD per GiB and minute',
        created_at: '2022-02-14T10:11:26.567713',
      },
    });

    const moved = { ...ofOne, name: 'Moved', region: { code: 'b', name: 'B' }, disks: [], status: 'Stopped' };
    await scene.clusters([cluster('moves', moved), stays, cluster('comes', ofTwo)], {
      limits: LAX,
      missingIsDeleted: true,
    });
    const second = await lastDiff();
    expect(second.rows.map(({ change, key }) => [change, key])).toEqual([
      ['retired', 'goes'],
      ['changed', 'moves'],
      ['added', 'comes'],
    ]);
    expect(second.rows[0]).toMatchObject({ before: { name: 'goes', user: 'Ada Lovelace' }, after: null });
    expect(second.rows[1]).toMatchObject({
      before: {
        name: 'moves',
        region: 'a',
        status: 'Active',
        disks: '100 GiB ssd at 0.001 USD per GiB and minute',
      },
      after: { name: 'Moved', region: 'b', status: 'Stopped', disks: null },
    });
    expect(Object.keys(second.rows[1]?.before ?? {})).not.toContain('replicas');
    const pages = [];
    for (const offset of [0, 1, 2]) {
      const page = await changesOf({ runId: second.run.id }, 1, offset);
      expect(page.totals).toEqual(second.totals);
      pages.push(...page.rows);
    }
    expect(pages).toEqual(second.rows);
    // An added cluster has its fields of that run, but its present slug and name.
    const again = await changesOf({ runId: first.run.id });
    expect(again.rows.map(({ after }) => after)).toEqual(first.rows.map(({ after }) => after));

    await scene.clusters([cluster('moves', moved), stays, cluster('comes', ofTwo)]);
    expect(await lastDiff()).toMatchObject({ run: { outcome: 'unchanged' }, rows: [] });
    expect(await changesOf({ since: '2026-01-01T02:00:00Z', provider: 'ACME' })).toEqual({
      totals: second.totals,
      rows: second.rows,
    });
    expect((await changesOf({ since: '2026-01-01T02:00:00Z', provider: 'other' })).rows).toEqual([]);
  });

  it('lists the stored part of a batch whose removal is held, and the removal after the approval', async () => {
    const all = Array.from({ length: 10 }, (_, index) => cluster(`c${index}`, ofOne));
    await scene.clusters(all);
    const few = [cluster('c0', { ...ofOne, status: 'Stopped' }), cluster('new', ofOne)];
    await scene.clusters(few);
    expect(await lastDiff()).toMatchObject({
      run: { outcome: 'held', heldBatch: 1, changedAt: '2026-01-01T02:00:00Z' },
      totals: { retired: 0, changed: 1, added: 1 },
    });
    await scene.clusters(few, { approved: true });
    expect((await lastDiff()).totals).toEqual({ retired: 9, changed: 0, returned: 0, added: 0 });
  });

  it('omits a creator’s name that an operator erased', async () => {
    await scene.clusters([cluster('x', ofOne)]);
    const [user] = await scene.sql<{ id: number; organization: number }[]>`
      select id, organization_id as organization from users where first_name = 'Ada'`;
    await deleteUser(scene.store.db, user?.organization ?? 0, user?.id ?? 0);
    await scene.clusters([cluster('x', { ...ofOne, status: 'Stopped' })]);
    const all = await changesOf({ since: '2026-01-01T00:00:00Z' });
    expect(all.rows).toHaveLength(2);
    expect(JSON.stringify(all)).not.toContain('Ada');
  });

  it('also lists clusters that operators retire without a run', async () => {
    await scene.clusters([cluster('x', ofOne), cluster('y', ofTwo)]);
    await deleteOrganization(scene.store.db, 'one');
    await retireSource(scene.store, 'plane', new Date().toISOString(), OPERATOR);
    const { rows } = await changesOf({ since: '2026-02-01T00:00:00Z' });
    expect(rows.map(({ change, runId, organization, key }) => [change, runId, organization, key])).toEqual([
      ['retired', null, 'two', 'y'],
      ['retired', null, 'one', 'x'],
    ]);
  });
});

const PAIRS = ['one/k', 'one/l', 'two/k'];
const reported = fc.option(
  fc.record({
    name: fc.constantFrom('Prod', 'Test'),
    status: fc.constantFrom('Active', 'Stopped'),
    cpu: fc.constantFrom(2, 4),
    place: fc.constantFrom('a', 'b'),
    replicas: fc.constantFrom(1, 2),
    disks: fc.array(fc.constantFrom('ssd', 'hdd'), { maxLength: 2 }),
    software: fc.constantFrom(
      undefined,
      { engine: 'postgresql', version: '16.4' },
      { engine: 'postgresql', version: '17.1', endOfLife: '2029-11-08' },
    ),
  }),
  { nil: undefined, freq: 3 },
);
const step = fc.record({
  batches: fc.tuple(reported, reported, reported),
  missingIsDeleted: fc.boolean(),
});

type State = Record<string, ClusterState>;

/** Reads the clusters that are not retired, independently of the history. */
async function stateOf(): Promise<State> {
  const rows = await scene.sql<(Record<string, string | null> & { key: string })[]>`
    select o.slug || '/' || c.source_key as key, c.name, c.slug, p.name as provider, r.code as region,
      m.name as machine, c.engine, c.version, c.end_of_life::text, c.status, c.shards::text, c.replicas::text, u.first_name || ' ' || u.last_name as user,
      (select string_agg('100 GiB ' || t.name || ' at 0.001 USD per GiB and minute', '; ' order by position)
        from disks join disk_types t on t.id = disk_type_id where cluster_id = c.id) as disks,
      to_char(c.created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US') as created_at
    from clusters c join organizations o on o.id = c.organization_id join regions r on r.id = c.region_id
    join providers p on p.id = r.provider_id join machines m on m.id = c.machine_id join users u on u.id = c.user_id
    where c.retired_at is null`;
  return Object.fromEntries(rows.map(({ key, ...state }) => [key, state]));
}

function applied(before: State, rows: readonly ClusterChange[]): State {
  const after = { ...before };
  for (const { change, organization, key, before: old, after: now } of rows) {
    const pair = `${organization}/${key}`;
    if (change === 'added' || change === 'returned') expect(after[pair]).toBeUndefined();
    else expect(after[pair]).toMatchObject(old ?? expect.unreachable());
    if (change === 'changed') expect(Object.keys(old ?? {})).toEqual(Object.keys(now ?? {}));
    else expect(Object.keys(now ?? old ?? {})).toHaveLength(CLUSTER_FIELDS.length);
    if (now === null) delete after[pair];
    else after[pair] = { ...after[pair], ...now };
  }
  return after;
}

it('the diffs of all runs lead from each state to the next, for any sequence of syncs', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 6 }), async (steps) => {
      await scene.reset();
      for (const slug of ['one', 'two']) await scene.organization(slug);
      let state: State = {};
      const diffs: { runId: number; after: unknown }[] = [];
      const afters = (rows: readonly ClusterChange[]) =>
        rows.map(({ clusterId, after }) => [clusterId, after]);
      for (const { batches, missingIsDeleted } of steps) {
        const items = PAIRS.flatMap((pair, index) => {
          const [organization = '', key = ''] = pair.split('/');
          const one = batches[index];
          if (one === undefined) return [];
          const { cpu, place, disks, software, ...fields } = one;
          return cluster(key, {
            organization,
            ...fields,
            ...(software && { software }),
            region: { code: place, name: place },
            machine: { cpu, ram: 4, ramUnit: 'Binary' },
            disks: disks.map((type) => disk(type)),
          });
        });
        await scene.clusters(items, { limits: LAX, missingIsDeleted });
        const { run, rows } = await lastDiff();
        diffs.push({ runId: run.id, after: afters(rows).sort() });
        state = applied(state, rows);
        expect(state).toEqual(await stateOf());
      }
      for (const { runId, after } of diffs)
        expect(afters((await changesOf({ runId })).rows).sort()).toEqual(after);
    }),
    { numRuns: runs(15) },
  );
}, 240_000);
