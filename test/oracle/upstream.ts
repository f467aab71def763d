/** The upstreams of a history: a price list and a control plane with the states of the model. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Feed } from './feed.ts';
import { createdAtOf, DISK, type Model, PROVIDER, personOf, regionName, regionOf, shapeOf } from './model.ts';

export interface Upstream extends AsyncDisposable {
  /** Address of the price list and the clusters. */
  readonly url: string;
}

/** @param pauseMs delay of the next answer (ms) */
export async function openUpstream(model: Model, pauseMs: () => number): Promise<Upstream> {
  const server = createServer((request, response) => {
    setTimeout(() => {
      const unmodified = request.headers['if-none-match'];
      if (request.url === '/machines') send(response, unmodified, model.machines, () => machines(model));
      else if (request.url === '/clusters') send(response, unmodified, model.clusters, () => clusters(model));
      else response.writeHead(404).end();
    }, pauseMs());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

function send(
  response: ServerResponse,
  unmodified: string | undefined,
  feed: Feed<unknown>,
  body: () => unknown,
): void {
  const etag = `"${feed.serve()}"`;
  response.setHeader('etag', etag);
  if (unmodified === etag) response.writeHead(304).end();
  else response.setHeader('content-type', 'application/json').end(JSON.stringify(body()));
}

function machines(model: Model): unknown[] {
  return [...model.machines.rows].map(([key, { price, isListed }]) => {
    const [code = '', name = ''] = key.split('/');
    return {
      region_code: code,
      region_name: regionName(code),
      name,
      ...shapeOf(name),
      ram_unit: 'GiB',
      price: (price / 100_000).toFixed(5),
      per: 'minute',
      currency: 'USD',
      ...(isListed ? {} : { excluded: 'unavailable' }),
    };
  });
}

function clusters(model: Model): unknown[] {
  return [...model.clusters.rows].map(([key, row]) => {
    const [organization = '', slug = ''] = key.split('/');
    const code = regionOf(slug);
    return {
      organization,
      id: key,
      slug,
      ...row,
      replicas: 1,
      region: { name: regionName(code), code },
      provider: { name: PROVIDER.name },
      user: personOf(organization),
      machine: { name: 'm0' },
      disks: [{ ...DISK, autoscaling: false }],
      created_at: createdAtOf(slug),
    };
  });
}
