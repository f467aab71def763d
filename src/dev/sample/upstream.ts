/**
 * The upstreams of the sample: two providers, a control plane and release cycles. They serve the JSON files of this folder in the
 * upstreams' formats. Machine types, regions and list prices are real values from the end of 2025, and releases from August 2026.
 * They are not kept up to date.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import clusters from './clusters.json' with { type: 'json' };
import locations from './hetzner/locations.json' with { type: 'json' };
import pricing from './hetzner/pricing.json' with { type: 'json' };
import serverTypes from './hetzner/server_types.json' with { type: 'json' };
import lifecycles from './lifecycles.json' with { type: 'json' };
import availability from './linode/availability.json' with { type: 'json' };
import databaseTypes from './linode/database_types.json' with { type: 'json' };
import transferPrices from './linode/network_transfer_prices.json' with { type: 'json' };
import linodeRegions from './linode/regions.json' with { type: 'json' };
import linodeTypes from './linode/types.json' with { type: 'json' };
import volumeTypes from './linode/volume_types.json' with { type: 'json' };
import { hetznerPages, linodePages, type Paged } from './pages.ts';

export const SAMPLE_ORGANIZATION = { slug: 'sample', name: 'Sample organization' } as const;

export const SAMPLE_HETZNER_TOKEN = 'sample';

export interface SampleUpstream extends AsyncDisposable {
  readonly url: string;
  readonly hetznerUrl: string;
  readonly linodeUrl: string;
  readonly clustersUrl: string;
  readonly lifecyclesUrl: string;
}

/** Returns the variables that make the sample's upstreams sources. */
export function sampleSettings({
  hetznerUrl,
  linodeUrl,
  clustersUrl,
  lifecyclesUrl,
}: Omit<SampleUpstream, 'url' | typeof Symbol.asyncDispose>) {
  return {
    HETZNER_URL: hetznerUrl,
    HETZNER_TOKEN: SAMPLE_HETZNER_TOKEN,
    LINODE_URL: linodeUrl,
    CLUSTERS_URL: clustersUrl,
    LIFECYCLES_URL: lifecyclesUrl,
  };
}

export interface Endpoint {
  /** A text, or an object that is no list, is sent unchanged. */
  readonly rows: readonly unknown[] | object | string;
  readonly paged?: Paged;
  readonly token?: string;
}

export const SAMPLE_ENDPOINTS: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  ['/hetzner/v1/locations', hetzner('locations', locations.locations)],
  ['/hetzner/v1/server_types', hetzner('server_types', serverTypes.server_types)],
  ['/hetzner/v1/pricing', { rows: pricing, token: SAMPLE_HETZNER_TOKEN }],
  ['/linode/v4/linode/types', { rows: linodeTypes.data, paged: linodePages }],
  ['/linode/v4/regions', { rows: linodeRegions.data, paged: linodePages }],
  ['/linode/v4beta/regions/availability', { rows: availability.data, paged: linodePages }],
  ['/linode/v4/volumes/types', { rows: volumeTypes.data, paged: linodePages }],
  ['/linode/v4/databases/types', { rows: databaseTypes.data, paged: linodePages }],
  ['/linode/v4/network-transfer/prices', { rows: transferPrices.data, paged: linodePages }],
  ['/clusters.json', { rows: clusters }],
  ...Object.entries(lifecycles).map(([name, releases]): [string, Endpoint] => [
    `/lifecycles/products/${name}/`,
    { rows: { schema_version: '1.2.1', result: { name, releases } } },
  ]),
]);

function hetzner(key: string, rows: readonly unknown[]): Endpoint {
  return { rows, paged: hetznerPages(key), token: SAMPLE_HETZNER_TOKEN };
}

export interface UpstreamOptions {
  /** 0, the default, selects a free port. */
  readonly port?: number;
  /** Returns the endpoint at a path; undefined for 404. By default those of the sample. */
  readonly endpointAt?: (path: string) => Endpoint | undefined;
}

/** Serves the sample on loopback. Rejects if the port is taken. */
export async function startSampleUpstream(options: UpstreamOptions = {}): Promise<SampleUpstream> {
  const { endpointAt = (path) => SAMPLE_ENDPOINTS.get(path) } = options;
  const server = createServer((request, response) => answer(request, response, endpointAt));
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    hetznerUrl: `${url}/hetzner`,
    linodeUrl: `${url}/linode`,
    clustersUrl: `${url}/clusters.json`,
    lifecyclesUrl: `${url}/lifecycles`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

interface Reply {
  readonly status: number;
  readonly body: object | string;
  readonly allow?: string;
}

type EndpointAt = NonNullable<UpstreamOptions['endpointAt']>;

function answer(request: IncomingMessage, response: ServerResponse, endpointAt: EndpointAt): void {
  const { method, url = '', headers } = request;
  const { status, body, allow } = replyTo(method, url, headers.authorization, endpointAt);
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  response.writeHead(status, {
    'content-type': typeof body === 'string' ? 'text/xml' : 'application/json',
    'content-length': bytes.length,
    ...(allow === undefined ? {} : { allow }),
  });
  response.end(bytes);
}

function replyTo(
  method: string | undefined,
  target: string,
  authorization: string | undefined,
  endpointAt: EndpointAt,
): Reply {
  const url = URL.canParse(target, 'http://sample') ? new URL(target, 'http://sample') : undefined;
  const endpoint = url && endpointAt(url.pathname);
  if (!endpoint) return { status: 404, body: problem('not_found', 'the sample has no such document') };
  if (method !== 'GET') {
    return { status: 405, body: problem('method_not_allowed', 'only GET is answered'), allow: 'GET' };
  }
  if (endpoint.token !== undefined && authorization !== `Bearer ${endpoint.token}`) {
    return { status: 401, body: problem('unauthorized', 'the bearer token is missing or wrong') };
  }
  const { rows, paged } = endpoint;
  const body = paged && Array.isArray(rows) ? paged(rows, url.searchParams) : rows;
  if (body === undefined) {
    return { status: 400, body: problem('invalid_input', 'no such page, or no such page size') };
  }
  return { status: 200, body };
}

function problem(code: string, message: string): object {
  return { error: { code, message }, errors: [{ reason: message }] };
}
