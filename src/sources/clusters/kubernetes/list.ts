import { z } from 'zod';
import { SourceError } from '../../source.ts';
import { type ApiServer, Expired, Forbidden, NotFound } from './api-server.ts';
import type { Reading } from './kind.ts';
import type { Target } from './target.ts';

const PAGE_SIZE = 100;
const MOST_PAGES = 10_000;

const Page = z.object({
  metadata: z.object({ resourceVersion: z.string().min(1), continue: z.string().nullish() }),
  items: z.array(z.unknown()).nullable(),
});

/** An API's discovery document, as far as it is used. */
const Resources = z.object({ resources: z.array(z.object({ name: z.string() })) });

/** Everything of one target at one moment. */
export interface Listed {
  /** What a watch goes on from. */
  readonly resourceVersion: string;
  /** By identity; an object may hold several clusters, or none that can be used. */
  readonly objects: ReadonlyMap<string, Reading>;
}

/**
 * Lists a target, page by page.
 * @param deadlineMs for each page
 * @returns undefined where the cluster does not know this kind of object (404); where the credentials lack the right to
 *   it (403), the API's discovery document tells that from a kind that is installed
 * @throws as ApiServer.json does, but for Expired and NotFound
 */
export async function listed(
  server: ApiServer,
  target: Target,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<Listed | undefined> {
  try {
    return await inPages(server, target, PAGE_SIZE, deadlineMs, signal);
  } catch (error) {
    if (error instanceof NotFound) return undefined;
    if (error instanceof Forbidden && !(await isKnown(server, target, deadlineMs, signal))) return undefined;
    if (!(error instanceof Expired)) throw error;
  }
  // The server has compacted its history between two pages. Only a list that is one page cannot meet that again.
  try {
    return await inPages(server, target, undefined, deadlineMs, signal);
  } catch (error) {
    if (error instanceof Expired)
      throw new SourceError('retry', `${target.path}: ${error.message} to a list`);
    throw error;
  }
}

/**
 * Whether the cluster knows this kind of object, as far as that can be told: any account may read what APIs there are,
 * unless an administrator took that right away.
 */
async function isKnown(
  server: ApiServer,
  { apiVersion, plural }: Target,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const path = `/apis/${apiVersion}`;
  try {
    const { resources } = await server.json(
      { path, query: {}, right: `get ${path}`, signal },
      Resources,
      deadlineMs,
    );
    return resources.some(({ name }) => name === plural);
  } catch (error) {
    if (error instanceof NotFound) return false;
    // Told by no answer at all.
    if (!(error instanceof SourceError) || error.kind === 'retry') throw error;
    return true;
  }
}

async function inPages(
  server: ApiServer,
  target: Target,
  limit: number | undefined,
  deadlineMs: number,
  signal: AbortSignal,
): Promise<Listed> {
  const objects = new Map<string, Reading>();
  const seen = new Set<string>();
  let next: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const query = {
      ...target.query,
      ...(limit === undefined ? {} : { limit: String(limit) }),
      ...(next === undefined ? {} : { continue: next }),
    };
    const request = { path: target.path, query, right: `list ${target.resource}`, signal };
    const { metadata, items } = await server.json(request, Page, deadlineMs);
    for (const object of items ?? []) objects.set(target.identity(object), target.read(object));
    if (metadata.continue == null || metadata.continue === '')
      return { resourceVersion: metadata.resourceVersion, objects };
    next = metadata.continue;
    if (seen.has(next)) break;
    seen.add(next);
  }
  throw new SourceError('invalid', `the pages of ${target.path} do not come to an end`);
}

/** The failure of a cluster that knows none of the kinds that are read; an empty list would mean "all deleted". */
export function nothingInstalled(targets: readonly Target[]): SourceError {
  const wanted = [...new Set(targets.map(({ resource }) => resource))].join(', ');
  return new SourceError(
    'gone',
    `the API server answers 404 for each of ${wanted}: no operator of these is installed, or the source's URL is ` +
      'not that of a Kubernetes API server',
  );
}
