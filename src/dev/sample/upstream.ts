/**
 * The upstreams of the sample: two providers and a control plane. They serve the JSON files of this folder in the providers'
 * formats. Machine types, regions and list prices are real values from the end of 2025, and are not kept up to date.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import clusters from './clusters.json' with { type: 'json' };
import locations from './hetzner/locations.json' with { type: 'json' };
import serverTypes from './hetzner/server_types.json' with { type: 'json' };
import availability from './linode/availability.json' with { type: 'json' };
import linodeRegions from './linode/regions.json' with { type: 'json' };
import linodeTypes from './linode/types.json' with { type: 'json' };
import { hetznerPages, linodePages, type Paged } from './pages.ts';

export const SAMPLE_ORGANIZATION = { slug: 'sample', name: 'Sample organization' } as const;

export const SAMPLE_HETZNER_TOKEN = 'sample';

export interface SampleUpstream extends AsyncDisposable {
  readonly url: string;
  readonly hetznerUrl: string;
  readonly linodeUrl: string;
  readonly clustersUrl: string;
}

interface Endpoint {
  readonly rows: readonly unknown[];
  readonly paged?: Paged;
  readonly token?: string;
}

const ENDPOINTS: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  ['/hetzner/v1/locations', hetzner('locations', locations.locations)],
  ['/hetzner/v1/server_types', hetzner('server_types', serverTypes.server_types)],
  ['/linode/v4/linode/types', { rows: linodeTypes.data, paged: linodePages }],
  ['/linode/v4/regions', { rows: linodeRegions.data, paged: linodePages }],
  ['/linode/v4beta/regions/availability', { rows: availability.data, paged: linodePages }],
  ['/clusters.json', { rows: clusters }],
]);

function hetzner(key: string, rows: readonly unknown[]): Endpoint {
  return { rows, paged: hetznerPages(key), token: SAMPLE_HETZNER_TOKEN };
}

/** Serves the sample on loopback. Port 0, the default, selects a free one. Rejects if the port is taken. */
export async function startSampleUpstream(options: { readonly port?: number } = {}): Promise<SampleUpstream> {
  const server = createServer(answer);
  const port = await new Promise<number>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    hetznerUrl: `${url}/hetzner`,
    linodeUrl: `${url}/linode`,
    clustersUrl: `${url}/clusters.json`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

interface Reply {
  readonly status: number;
  readonly body: object;
  readonly allow?: string;
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { status, body, allow } = replyTo(request.method, request.url ?? '', request.headers.authorization);
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': bytes.length,
    ...(allow === undefined ? {} : { allow }),
  });
  response.end(bytes);
}

function replyTo(method: string | undefined, target: string, authorization: string | undefined): Reply {
  const url = URL.canParse(target, 'http://sample') ? new URL(target, 'http://sample') : undefined;
  const endpoint = url && ENDPOINTS.get(url.pathname);
  if (!endpoint) return { status: 404, body: problem('not_found', 'the sample has no such document') };
  if (method !== 'GET') {
    return { status: 405, body: problem('method_not_allowed', 'only GET is answered'), allow: 'GET' };
  }
  if (endpoint.token !== undefined && authorization !== `Bearer ${endpoint.token}`) {
    return { status: 401, body: problem('unauthorized', 'the bearer token is missing or wrong') };
  }
  const body = endpoint.paged ? endpoint.paged(endpoint.rows, url.searchParams) : endpoint.rows;
  if (body === undefined) {
    return { status: 400, body: problem('invalid_input', 'no such page, or no such page size') };
  }
  return { status: 200, body };
}

function problem(code: string, message: string): object {
  return { error: { code, message }, errors: [{ reason: message }] };
}
