/** Each adapter with the payloads of its conformance case, some of them mutated. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fixedCredentials } from '../../../src/sources/credentials/provider.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { catalogueAdapters, clusterAdapters } from '../../../src/sources/registry.ts';
import type {
  AnyCatalogueAdapter,
  CatalogueItem,
  ClusterAdapter,
  ClusterItem,
  SourceHttp,
} from '../../../src/sources/source.ts';
import { caseOf, type Json } from '../../conformance/catalogue-case.ts';
import { clusterCaseOf } from '../../conformance/cluster-case.ts';
import { pick } from './budget.ts';
import { type AnswerTo, type MemoryAnswer, memoryHttp } from './memory-http.ts';
import { type Mutation, mutatedBytes } from './mutate.ts';

/** The answer instead of a page; undefined leaves the page unchanged. */
export type Otherwise = (page: Page) => MemoryAnswer | undefined;

export interface Page {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly json: Json;
  /** The field that contains the rows, `''` if the document is the list itself. */
  readonly list: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Item = CatalogueItem | ClusterItem;

export interface FuzzSource {
  readonly id: string;
  /** The adapter, if it reads a catalogue. */
  readonly catalogue: AnyCatalogueAdapter | undefined;
  /** Reads these answers. */
  read(trouble?: Mutation | Otherwise): AsyncIterable<Item>;
}

/** A source with more requests reads in a circle. */
const REQUESTS_AT_MOST = 3000;
const UPSTREAM = 'http://upstream.test';
const NOW = new Date('2026-03-01T00:00:00Z');

/** All except the one with a special client, see `clusters-kubernetes`. */
export async function fuzzSources(): Promise<FuzzSource[]> {
  const catalogues = catalogueAdapters.map(async (adapter): Promise<FuzzSource> => {
    const { pages, basePath = '', options } = await caseOf(adapter.id);
    const context = { now: () => NOW, options: options?.(UPSTREAM) };
    const read = (http: SourceHttp) => adapter.catalogue({ ...context, http });
    return { id: adapter.id, catalogue: adapter, read: reading(pages, basePath, read) };
  });
  const planes = clusterAdapters.map(async (adapter): Promise<FuzzSource | undefined> => {
    const { pages, basePath = '', options, ownClient } = await clusterCaseOf(adapter.id);
    if (ownClient) return undefined;
    const read = (http: SourceHttp) => adapter.clusters({ http, options, ...planeContext });
    return { id: `clusters-${adapter.id}`, catalogue: undefined, read: reading(pages, basePath, read) };
  });
  return (await Promise.all([...catalogues, ...planes])).filter((source) => source !== undefined);
}

const planeContext: Pick<Parameters<ClusterAdapter['clusters']>[0], 'now' | 'address'> = {
  now: () => NOW,
  address: { url: UPSTREAM, credentials: fixedCredentials('fuzz:token') },
};

/** The control planes whose adapters have special clients, over a real server. */
export async function networkSource(id: string): Promise<FuzzSource & AsyncDisposable> {
  const adapter = clusterAdapters.find((each) => each.id === id);
  if (adapter === undefined) throw new Error(`there is no adapter ${id}`);
  const { pages, options } = await clusterCaseOf(id);
  const good = pages.map(({ json }) => Buffer.from(JSON.stringify(json)));
  let answer = answering(pages, good, undefined);
  const server = createServer(({ url = '/' }, response) => {
    const { status = 200, bytes, headers } = answer(new URL(url, UPSTREAM));
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': bytes.length,
      ...headers,
    });
    response.end(status === 204 || status === 304 ? undefined : bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const credentials = fixedCredentials('fuzz:token');
  const limits = {
    credentials: adapter.credentials,
    token: 'fuzz:token',
    deadlineMs: 10_000,
    maxBytes: 5_000_000,
  };
  return {
    id: `clusters-${id}`,
    catalogue: undefined,
    read(mutation) {
      answer = answering(pages, good, mutation);
      const http = openSourceHttp({ ...limits, baseUrl: url });
      return adapter.clusters({ http, options, now: () => NOW, address: { url, credentials } });
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function reading(
  pages: readonly Page[],
  basePath: string,
  read: (http: SourceHttp) => AsyncIterable<Item>,
): FuzzSource['read'] {
  const good = pages.map(({ json }) => Buffer.from(JSON.stringify(json)));
  return (mutation) => read(memoryHttp(new URL(UPSTREAM + basePath), answering(pages, good, mutation)));
}

function answering(
  pages: readonly Page[],
  good: readonly Uint8Array[],
  trouble: Mutation | Otherwise | undefined,
): AnswerTo {
  const otherwise = typeof trouble === 'function' ? trouble : undefined;
  const mutation = typeof trouble === 'function' ? undefined : trouble;
  const broken = mutation === undefined ? undefined : pick(pages, mutation.page);
  let requests = 0;
  return (url) => {
    requests += 1;
    if (requests > REQUESTS_AT_MOST) throw new Error(`it asks for ever, last for ${url}`);
    const index = indexOf(pages, url);
    const page = pages[index];
    if (page === undefined) return { status: 404, bytes: Buffer.from('{}') };
    const other = otherwise?.(page);
    if (other !== undefined) return other;
    if (page !== broken || mutation === undefined)
      return { bytes: good[index] ?? new Uint8Array(), headers: page.headers };
    const { instead, status, bare } = mutation;
    const { json, headers } = instead === undefined ? page : pick(pages, instead);
    return { status, bytes: mutatedBytes(json, mutation), ...(bare ? {} : { headers }) };
  };
}

/** The page of a request; a request from a mutated payload gets the first of its path, since pages repeat. */
function indexOf(pages: readonly Page[], url: URL): number {
  const exact = pages.findIndex(
    ({ path, query }) =>
      path === url.pathname &&
      url.searchParams.size === Object.keys(query).length &&
      Object.entries(query).every(([name, value]) => url.searchParams.get(name) === value),
  );
  return exact === -1 ? pages.findIndex(({ path }) => path === url.pathname) : exact;
}
