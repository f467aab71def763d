/** Samples of the resources of processes and servers of a soak. */
import { readdir, readFile } from 'node:fs/promises';
import type { Stack } from '../faults/support/stack.ts';
import type { Allowance } from './growth.ts';

/** Name → megabytes or count. */
export type Sample = Readonly<Record<string, number>>;

/** The allowed growth by the first word of a name. Pools open up to thirty connections on demand. */
export const ALLOWED: Readonly<Record<string, Allowance>> = {
  memory: { share: 0.15, absolute: 15 },
  handles: { share: 0.25, absolute: 15 },
  keys: { share: 0.1, absolute: 50 },
  connections: { share: 0.25, absolute: 25 },
};

export async function sample({ readers, worker, cacheClient, store }: Stack): Promise<Sample> {
  const programs = [
    ...readers.map(({ name, program }) => [`reader ${name}`, program.pid] as const),
    ['worker', worker.pid] as const,
  ];
  const found: Record<string, number> = {};
  for (const [name, pid] of programs) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    found[`memory of ${name}`] = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1000;
    found[`handles of ${name}`] = (await readdir(`/proc/${pid}/fd`)).length;
  }
  const info = await cacheClient.info();
  const of = (field: string) => Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  found['memory of the cache'] = of('used_memory') / 1e6;
  found['connections of the cache'] = of('connected_clients');
  found['keys of the cache'] = await cacheClient.dbsize();
  const [row] = await store.sql<{ count: number }[]>`
    select count(*)::int as count from pg_stat_activity where datname = current_database()`;
  found['connections of PostgreSQL'] = row?.count ?? 0;
  return found;
}
