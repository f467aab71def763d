import { z } from 'zod';
import { pagesOf } from '../../http/lists.ts';
import { omittedAtEnd } from '../../schema/fields.ts';
import { badAnswer, type ClusterItem, passingFailure, SourceError, statusOf } from '../../source.ts';
import type { ApiServer } from './api-server.ts';
import type { Reading, Reference, ReferencedObject } from './kind.ts';
import type { Target } from './target.ts';

const PAGE_SIZE = 100;
const MOST_OBJECTS = 100_000;
/** A page may have fewer objects than requested. */
const BOUNDS = { pages: 10_000, values: Number.POSITIVE_INFINITY };

/** An API server omits empty fields, so the last page has no `continue`. */
const Page = z.object({
  metadata: z.object({ resourceVersion: z.string().min(1), continue: omittedAtEnd }),
  items: z.array(z.unknown()).nullable(),
});

const Resources = z.object({ resources: z.array(z.object({ name: z.string() })) });

/**
 * Lists a target, page by page. Returns undefined if the cluster does not know this kind (404). After a missing right (403),
 * the discovery API decides whether the kind is installed. @throws as ApiServer.json
 */
export async function listed(server: ApiServer, target: Target, signal: AbortSignal) {
  try {
    return await inPages(server, target, PAGE_SIZE, signal);
  } catch (error) {
    const status = statusOf(error);
    if (status === 404) return undefined;
    if (status === 403 && !(await isKnown(server, target, signal))) return undefined;
    if (status !== 410) throw error;
  }
  // The server compacted its history between two pages. A list in one page cannot fail by that.
  try {
    return await inPages(server, target, undefined, signal);
  } catch (error) {
    throw statusOf(error) === 410 ? passingFailure(`${target.path} answers 410 to a list`) : error;
  }
}

/** Without the right to use the discovery API, which every account has by default, the kind counts as known. */
async function isKnown(server: ApiServer, target: Target, signal: AbortSignal): Promise<boolean> {
  const { apiVersion, plural } = target;
  const path = `/apis/${apiVersion}`;
  try {
    const { data } = await server.json({ path, query: {}, right: `get ${path}`, signal }, Resources);
    return data.resources.some(({ name }) => name === plural);
  } catch (error) {
    if (statusOf(error) === 404) return false;
    // The result is unknown without an answer.
    if (!(error instanceof SourceError) || error.kind === 'retry') throw error;
    return true;
  }
}

async function inPages(server: ApiServer, target: Target, limit: number | undefined, signal: AbortSignal) {
  /** By identity; an object may have several clusters, or no usable one. */
  const objects = new Map<string, Reading>();
  let resourceVersion = '';
  const pages = pagesOf(
    target.path,
    '',
    (from) => {
      const query = {
        ...target.query,
        ...(limit === undefined ? {} : { limit: String(limit) }),
        ...(from === '' ? {} : { continue: from }),
      };
      const request = { path: target.path, query, right: `list ${target.resource}`, signal };
      return server.json(request, Page);
    },
    ({ data }) => data.metadata.continue || undefined,
    BOUNDS,
  );
  for await (const { data } of pages) {
    const { metadata, items } = data;
    for (const object of items ?? []) objects.set(target.identity(object), target.read(object));
    if (objects.size > MOST_OBJECTS) {
      const problem = `${target.path} lists more than ${MOST_OBJECTS} objects, the most that are read of one kind`;
      throw badAnswer(`${problem}; name the namespaces to read in the option namespaces`);
    }
    ({ resourceVersion } = metadata);
  }
  return { resourceVersion, objects };
}

/** Returns the failure of a cluster that knows none of the kinds; an empty list would mean "all deleted". */
export function nothingInstalled(targets: readonly Target[]): SourceError {
  const wanted = [...new Set(targets.map(({ resource }) => resource))].join(', ');
  return new SourceError(
    'gone',
    `the API server answers 404 for each of ${wanted}: none of these operators is installed, or the source's URL is ` +
      'not that of a Kubernetes API server',
  );
}

const NOWHERE: ReferencedObject = { missing: 'does not exist; create it, or name another one in the object' };

/** Returns the clusters in objects, with the objects that these refer to. Each of those is requested once. */
export async function resolved(
  server: ApiServer,
  readings: Iterable<Reading>,
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
      const one = known.get(reference.what) ?? (await fetched(server, reference, signal));
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
  signal: AbortSignal,
): Promise<ReferencedObject> {
  if (path === undefined) return NOWHERE;
  const request = { path, query: {}, right: `get ${resource}`, signal };
  try {
    return { object: (await server.json(request, z.unknown())).data };
  } catch (error) {
    const status = statusOf(error);
    if (status === 404) return NOWHERE;
    if (status === 403) return { missing: `may not be read; allow the credentials to get ${resource}` };
    throw status === 410 ? passingFailure(`${path} answers 410`) : error;
  }
}
