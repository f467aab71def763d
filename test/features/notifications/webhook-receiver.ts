import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A receiver of webhooks, with its requests and its answer. */
export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly taken: { readonly headers: IncomingHttpHeaders; readonly text: string }[];
  requestCount: number;
  /** The largest number of requests at the same time. */
  mostAtOnce: number;
  /** 200 at first. */
  status: number;
  /** Answers wait for it. */
  before: Promise<void>;
}

export async function receiver(): Promise<Receiver> {
  const taken: Receiver['taken'] = [];
  let waiting = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      it.requestCount += 1;
      waiting += 1;
      it.mostAtOnce = Math.max(it.mostAtOnce, waiting);
      response.once('close', () => {
        waiting -= 1;
      });
      await it.before;
      if (it.status === 200) taken.push({ headers: request.headers, text: Buffer.concat(chunks).toString() });
      response.writeHead(it.status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const it = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/of-a-secret-path`,
    taken,
    requestCount: 0,
    mostAtOnce: 0,
    status: 200,
    before: Promise.resolve(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return it;
}
