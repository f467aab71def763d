/**
 * `npm run bench -- sync --clusters`: many organizations' clusters: first, unchanged, 1 % changed and one changed.
 */
import type { Redis } from 'ioredis';
import type { Bar } from '../support/bar.ts';
import type { Database } from '../support/servers.ts';
import { REGIONS } from './catalogue.ts';
import { runWorker } from './child.ts';
import { type ClustersShape, changedOrganizations } from './clusters.ts';
import { watchEffects } from './effects.ts';
import type { Step } from './rounds.ts';

/** Offers of the catalogue that has the clusters' machines. */
const OFFERS = REGIONS * 1000;
const MEGABYTE = 1_000_000;
const STEPS = ['first', 'unchanged', 'hundredth', 'one'] as const;
const NAMES = {
  first: 'first',
  unchanged: 'unchanged',
  hundredth: '1 % changed',
  one: 'one changed',
} as const;

export type ClusterSyncs = Readonly<Record<(typeof STEPS)[number], Step>>;

export interface ClusterSyncOptions {
  readonly database: Database;
  readonly redis: Redis;
  readonly redisUrl: string;
  readonly organizations: number;
  readonly clusters: number;
  readonly say: (line: string) => void;
}

export async function runClusterSyncs(options: ClusterSyncOptions): Promise<ClusterSyncs> {
  const { database, redis, redisUrl, organizations, clusters, say } = options;
  const { sql, url } = database;
  await sql`
    insert into organizations (slug, name)
    select 'org-' || n, 'Organization ' || n from generate_series(1, ${organizations}::integer) n`;
  say(`a catalogue of ${OFFERS} offers`);
  await runWorker({ what: 'sync', databaseUrl: url, redisUrl, shape: { offers: OFFERS, edition: 0 } });
  const sync = async (name: keyof ClusterSyncs, changed: ClustersShape['changed']): Promise<Step> => {
    // As autovacuum does in the hour between two syncs.
    await sql`vacuum (analyze)`;
    await sql`checkpoint`;
    const effects = await watchEffects(sql, redis, 'clusters');
    const shape = { organizations, clusters, changed };
    const measured = await runWorker({ what: 'sync', databaseUrl: url, redisUrl, shape });
    const { sync: stored, publish } = measured;
    say(`${NAMES[name]}: sync ${stored?.seconds.toFixed(2)} s, publishing ${publish.seconds.toFixed(2)} s`);
    return { measured, effects: await effects() };
  };
  return {
    first: await sync('first', 'nothing'),
    unchanged: await sync('unchanged', 'nothing'),
    hundredth: await sync('hundredth', 'hundredth'),
    one: await sync('one', 'one'),
  };
}

export function clusterBars(syncs: ClusterSyncs, shape: Omit<ClustersShape, 'changed'>): Bar[] {
  const touched = changedOrganizations({ ...shape, changed: 'hundredth' });
  const documents = { first: shape.organizations, unchanged: 0, hundredth: touched, one: 1 };
  const exactly = (what: string, found: number, limit: number): Bar => ({
    what,
    found,
    unit: '',
    limit,
    bound: 'exactly',
  });
  return [
    ...STEPS.flatMap((name): Bar[] => {
      const { measured, effects } = syncs[name];
      const { sync, publish } = measured;
      return [
        { what: `${NAMES[name]}: sync`, found: sync?.seconds ?? Number.NaN, unit: 's' },
        { what: `${NAMES[name]}: publishing`, found: publish.seconds, unit: 's' },
        {
          what: `${NAMES[name]}: peak memory`,
          found: publish.rssPeak / MEGABYTE,
          unit: 'MB',
          limit: 300,
        },
        {
          what: `${NAMES[name]}: event-loop delay p99.9`,
          found: Math.max(sync?.loopP999 ?? 0, publish.loopP999),
          unit: 'ms',
          limit: 50,
        },
        exactly(`${NAMES[name]}: documents published`, effects.documents, documents[name]),
        exactly(`${NAMES[name]}: locks lost`, measured.locksLost, 0),
      ];
    }),
    exactly('unchanged: rows written', syncs.unchanged.effects.rowsWritten, 0),
    exactly('unchanged: versions bumped', syncs.unchanged.effects.versions, 0),
    exactly('one changed: versions bumped', syncs.one.effects.versions, 1),
  ];
}
