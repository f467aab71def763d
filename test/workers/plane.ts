/** A control plane over real HTTP that a test drives, and an adapter that watches it. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ClustersConfig } from '../../src/app/run-source.ts';
import type { DescribedCluster } from '../../src/domain/cluster.ts';
import { NO_RULES } from '../../src/sources/cluster-rules.ts';
import { NO_CREDENTIALS } from '../../src/sources/credentials/provider.ts';
import { type ClusterAdapter, type ClusterItem, SourceError } from '../../src/sources/source.ts';
import { DEFAULT_GUARD_LIMITS } from '../../src/sync/guards.ts';
import { YEARLY } from '../support/day.ts';
import { reported } from '../sync/clusters/rows.ts';

/** How it answers a new watch: normally, or with a status. */
export type PlaneBehaviour = 'well' | { readonly status: number; readonly retryAfter?: number };

export interface Plane extends AsyncDisposable {
  readonly url: string;
  /** Replaces the clusters and notifies the watches. */
  set(clusters: readonly DescribedCluster[]): void;
  behaviour: PlaneBehaviour;
  /** Lists wait for this, with the clusters at the time of their request. */
  listsWaitFor: Promise<unknown>;
  /** Watches that wait for a change: now, and at most so far. */
  readonly watching: { now: number; most: number };
  /** Requests so far. */
  readonly requests: { list: number; watch: number };
}

interface Answer {
  readonly version: number;
  readonly clusters: readonly DescribedCluster[];
}

export async function startPlane(clusters: readonly DescribedCluster[] = []): Promise<Plane> {
  let present: Answer = { version: 1, clusters };
  const waiting = new Set<ServerResponse>();
  const sendState = (response: ServerResponse, what: Answer) => response.end(JSON.stringify(what));
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://plane');
    if (url.pathname === '/list') {
      plane.requests.list += 1;
      const then = present;
      await plane.listsWaitFor;
      sendState(response, then);
      return;
    }
    plane.requests.watch += 1;
    if (plane.behaviour !== 'well') {
      const { status, retryAfter } = plane.behaviour;
      response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }).end();
      return;
    }
    if (Number(url.searchParams.get('after')) < present.version) {
      sendState(response, present);
      return;
    }
    waiting.add(response);
    plane.watching.now = waiting.size;
    plane.watching.most = Math.max(plane.watching.most, waiting.size);
    response.on('close', () => {
      waiting.delete(response);
      plane.watching.now = waiting.size;
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const plane: Plane = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    behaviour: 'well',
    listsWaitFor: Promise.resolve(),
    watching: { now: 0, most: 0 },
    requests: { list: 0, watch: 0 },
    set(next) {
      present = { version: present.version + 1, clusters: next };
      for (const response of waiting) sendState(response, present);
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
  return plane;
}

const asItems = ({ clusters }: Answer): ClusterItem[] =>
  clusters.map((cluster) => ({ kind: 'cluster', cluster }));

async function present(url: string, signal?: AbortSignal): Promise<Answer> {
  const response = await fetch(url, signal === undefined ? {} : { signal }).catch((cause: unknown) => {
    throw new SourceError('retry', 'the plane does not answer', { cause });
  });
  if (response.ok) return (await response.json()) as Answer;
  const after = response.headers.get('retry-after');
  const requests = after === null ? {} : { retryAfterMs: Number(after) * 1000 };
  throw new SourceError('retry', `the plane answered ${response.status}`, requests);
}

const planeAdapter: ClusterAdapter = {
  id: 'plane',
  endpoints: ['/list', '/watch'],
  credentials: 'none',
  schedule: YEARLY,
  async *clusters({ address }) {
    yield* asItems(await present(`${address.url}/list`));
  },
  async *watch({ address, signal }) {
    for (let version = 0; ; ) {
      const state = await present(`${address.url}/watch?after=${version}`, signal);
      version = state.version;
      yield asItems(state);
    }
  },
};

/** A source that watches the plane and whose only scheduled slot is long past. */
export function planeSource(url: string, change: Partial<ClustersConfig> = {}): ClustersConfig {
  return {
    kind: 'clusters',
    id: 'plane',
    adapter: planeAdapter,
    url,
    credentials: NO_CREDENTIALS,
    schedule: planeAdapter.schedule,
    maxAge: 3600,
    limits: DEFAULT_GUARD_LIMITS,
    rules: NO_RULES,
    ...change,
  };
}

/** Returns clusters `c1`, `c2`, … of the organization `org`. */
export function clusters(count: number, change: Partial<DescribedCluster> = {}): DescribedCluster[] {
  return Array.from({ length: count }, (_, index) => ({ ...reported(`c${index + 1}`), ...change }));
}
