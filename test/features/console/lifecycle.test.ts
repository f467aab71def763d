import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ClusterAnswer, LifecycleAnswer } from '../../../src/features/console/routes/answers.ts';
import { untilDayLasts } from '../../support/day.ts';
import { addOrganizations, atHetzner, statesClusters } from './clusters-scene.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

let scene: ConsoleScene;
beforeAll(async () => {
  await untilDayLasts();
  scene = await openConsoleScene();
  await scene.sync(1);
  await addOrganizations(scene, { acme: 'Acme Ltd', zeta: 'Zeta' });
  const on = (organization: string, key: string, version: string, endOfLife?: string) =>
    atHetzner(organization, key, {
      software: { engine: 'postgresql', version, ...(endOfLife && { endOfLife }) },
    });
  await statesClusters(scene, [
    on('acme', 'a', '13.4'),
    on('zeta', 'b', '13.4'),
    on('zeta', 'c', '14.1'),
    on('zeta', 'd', '17', day(20)),
    on('zeta', 'e', '18'),
    atHetzner('acme', 'f'),
  ]);
  const { sql } = scene.worker.store;
  await sql`insert into sources (id, kind, adapter, verified_at) values ('lifecycles', 'lifecycles', 'endoflife', now())`;
  for (const [name, end] of Object.entries({ 13: day(-5), 14: day(100), 18: day(2000) }))
    await sql`
      insert into lifecycles (source_id, engine, name, end_of_life, has_ended)
      values ('lifecycles', 'postgresql', ${name}, ${end}::text::date, false)`;
});
afterAll(() => scene[Symbol.asyncDispose]());

const find = async (query = '') => (await scene.get(`/api/lifecycle?${query}`)) as LifecycleAnswer;
const versionsOf = ({ rows }: LifecycleAnswer) => rows.map(({ version, clusters }) => [version, clusters]);

describe('the ends of versions', () => {
  it('are those of all organizations: ended, ending and unknown ones', async () => {
    const answer = await find();
    expect(answer).toMatchObject({
      ...{ within: 180, readAt: expect.stringMatching(/Z$/), total: 4 },
      totals: { ended: 2, ending: 2, unknown: 1, all: 6 },
    });
    expect(versionsOf(answer)).toEqual([
      ['13.4', 2],
      ['17', 1],
      ['14.1', 1],
      [null, 1],
    ]);
    expect(answer.rows[0]).toMatchObject({
      ...{ engine: 'postgresql', provider: 'Hetzner', first: ['acme/a', 'zeta/b'] },
      lifecycle: { state: 'ended', endOfLife: day(-5), daysLeft: -5, statedBy: 'lifecycles' },
    });
    expect(answer.rows[1]?.lifecycle).toMatchObject({ statedBy: 'provider', daysLeft: 20 });
  });

  it('are selected by days, engine and page', async () => {
    expect(versionsOf(await find('within=20')).map(([version]) => version)).toEqual(['13.4', '17', null]);
    expect(versionsOf(await find('show=all')).map(([version]) => version)).toContain('18');
    expect((await find('engine=redis')).totals.all).toBe(0);
    const second = await find('limit=1&offset=1');
    expect([second.total, versionsOf(second)]).toEqual([4, [['17', 1]]]);
  });

  it.each([
    ['within=soon', 'within', /must be a number from 0 to 3650; it is "soon"/],
    ['within=4000', 'within', /must be a number from 0 to 3650/],
    ['engine=postgers', 'engine', /must be one of .*postgresql.*; it is "postgers"/],
    ['show=none', 'show', /must be one of urgent, all/],
  ])('are not selected by %s', async (query, field, error) => {
    expect(await find(query)).toEqual({ error: expect.stringMatching(error), field });
  });

  it('are part of a cluster', async () => {
    const { rows } = (await scene.get('/api/clusters?engine=postgresql&version=14.1')) as {
      rows: { id: number }[];
    };
    const { lifecycle } = (await scene.get(`/api/clusters/${rows[0]?.id}`)) as ClusterAnswer;
    expect(lifecycle).toMatchObject({ state: 'supported', endOfLife: day(100), cycle: { name: '14' } });
  });
});
