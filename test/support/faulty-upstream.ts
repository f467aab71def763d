import { createServer } from 'node:http';
import { startSampleUpstream } from '../../src/dev/sample/upstream.ts';

/** How an upstream answers: normally, with an error, with another body, or not before it is released. */
export type Behaviour =
  | 'well'
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  | { readonly until: Promise<unknown> };

export type Upstream = 'hetzner' | 'linode' | 'clusters';

/** The sample's upstreams, with a fifth of Linode's regions; tests set how each one answers. */
export interface FaultyUpstream extends AsyncDisposable {
  readonly urls: Readonly<Record<Upstream, string>>;
  readonly behaviours: Record<Upstream, Behaviour>;
  readonly calls: Record<Upstream, number>;
}

/** They have the sample's clusters or their own prices. Each run and each publication takes time for every region. */
const LINODE_REGIONS: readonly unknown[] = ['eu-central', 'ap-south', 'us-ord', 'id-cgk', 'br-gru'];

/** The lists with rows of each region, and the field with its code. */
const FIELD_OF: Readonly<Record<string, 'id' | 'region'>> = {
  '/linode/v4/regions': 'id',
  '/linode/v4beta/regions/availability': 'region',
};

/** Returns one page with the rows of these regions. @param page with all rows of the list */
function withFewRegions(page: string, field: 'id' | 'region'): string {
  const { data } = JSON.parse(page) as {
    data: readonly { readonly id?: string; readonly region?: string }[];
  };
  const few = data.filter((row) => LINODE_REGIONS.includes(row[field]));
  return JSON.stringify({ data: few, page: 1, pages: 1, results: few.length });
}

export async function faultyUpstream(): Promise<FaultyUpstream> {
  const sample = await startSampleUpstream();
  const behaviours: Record<Upstream, Behaviour> = { hetzner: 'well', linode: 'well', clusters: 'well' };
  const calls: Record<Upstream, number> = { hetzner: 0, linode: 0, clusters: 0 };
  const server = createServer(async (request, response) => {
    const path = request.url ?? '/';
    const name = (['hetzner', 'linode', 'clusters'] as const).find((known) => path.startsWith(`/${known}`));
    if (name) calls[name] += 1;
    const behaviour = name ? behaviours[name] : 'well';
    if (behaviour !== 'well' && 'until' in behaviour) await behaviour.until;
    else if (behaviour !== 'well') {
      response.writeHead(behaviour.status, behaviour.headers).end(behaviour.body);
      return;
    }
    if (response.destroyed) return;
    const authorization = request.headers.authorization;
    const [list = ''] = path.split('?');
    const field = FIELD_OF[list];
    const wanted = field === undefined ? path : `${list}?page_size=500`;
    const answer = await fetch(sample.url + wanted, { headers: authorization ? { authorization } : {} });
    const text = await answer.text();
    response
      .writeHead(answer.status, { 'content-type': 'application/json' })
      .end(answer.ok && field !== undefined ? withFewRegions(text, field) : text);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  return {
    urls: { hetzner: `${url}/hetzner`, linode: `${url}/linode`, clusters: `${url}/clusters.json` },
    behaviours,
    calls,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      await sample[Symbol.asyncDispose]();
    },
  };
}
