import { createServer } from 'node:http';
import { startSampleUpstream } from '../../src/dev/sample/upstream.ts';

/** How an upstream answers: normally, with an error, with another body, or not before it is released. */
export type Behaviour =
  | 'well'
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  | { readonly until: Promise<unknown> };

export type Upstream = 'hetzner' | 'linode' | 'clusters';

/** The sample's upstreams; tests set how each one answers. */
export interface FaultyUpstream extends AsyncDisposable {
  readonly urls: Readonly<Record<Upstream, string>>;
  readonly behaviours: Record<Upstream, Behaviour>;
  readonly calls: Record<Upstream, number>;
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
    const answer = await fetch(sample.url + path, { headers: authorization ? { authorization } : {} });
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
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
