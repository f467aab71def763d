/** The sample's upstreams, whose bodies change from one run to the next. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startSampleUpstream } from '../../../src/dev/sample/upstream.ts';

export interface EvolvingUpstream extends AsyncDisposable {
  readonly settings: Readonly<Record<string, string>>;
  /** Changes bodies of a path from now on, after the changes before. */
  edit<T>(path: string, change: (body: T) => void): void;
}

export async function startEvolvingUpstream(token: string): Promise<EvolvingUpstream> {
  await using opening = new AsyncDisposableStack();
  const sample = opening.use(await startSampleUpstream());
  const edits: { path: string; change: (body: never) => void }[] = [];
  const server = createServer(async (request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', sample.url);
    const { authorization } = request.headers;
    const answer = await fetch(sample.url + pathname + search, {
      headers: authorization ? { authorization } : {},
    });
    const body = await answer.json();
    for (const { path, change } of edits) if (path === pathname) change(body as never);
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  opening.defer(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const running = opening.move();
  return {
    settings: {
      HETZNER_URL: `${url}/hetzner`,
      HETZNER_TOKEN: token,
      LINODE_URL: `${url}/linode`,
      CLUSTERS_URL: `${url}/clusters.json`,
    },
    edit: (path, change) => void edits.push({ path, change }),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
