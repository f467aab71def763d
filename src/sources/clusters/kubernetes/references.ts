import { z } from 'zod';
import { type ClusterItem, passingFailure, statusOf } from '../../source.ts';
import type { ApiServer } from './api-server.ts';
import type { Reading, Reference, ReferencedObject } from './kind.ts';

const NOWHERE: ReferencedObject = { missing: 'does not exist; create it, or name another one in the object' };

/** Returns the clusters in objects, with the objects that these refer to. Each of those is requested once. */
export async function resolved(
  server: ApiServer,
  readings: Iterable<Reading>,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<readonly ClusterItem[]> {
  const known = new Map<string, ReferencedObject>();
  const items: ClusterItem[] = [];
  for (const reading of readings) {
    if (!('needs' in reading)) {
      items.push(...reading);
      continue;
    }
    const found: ReferencedObject[] = [];
    for (const reference of reading.needs) {
      const one = known.get(reference.what) ?? (await fetched(server, reference, deadlineMs, signal));
      known.set(reference.what, one);
      found.push(one);
    }
    items.push(...reading.read(found));
  }
  return items;
}

async function fetched(
  server: ApiServer,
  { path, resource }: Reference,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<ReferencedObject> {
  if (path === undefined) return NOWHERE;
  const request = { path, query: {}, right: `get ${resource}`, signal };
  try {
    return { object: (await server.json(request, z.unknown(), deadlineMs)).data };
  } catch (error) {
    const status = statusOf(error);
    if (status === 404) return NOWHERE;
    if (status === 403) return { missing: `may not be read; allow the credentials to get ${resource}` };
    throw status === 410 ? passingFailure(`${path} answers 410`) : error;
  }
}
