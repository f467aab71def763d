import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A receiver of webhooks, with its requests and its answer. */
export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly taken: { readonly headers: IncomingHttpHeaders; readonly text: string }[];
  requestCount: number;
  /** 200 at first. */
  status: number;
}

export async function receiver(): Promise<Receiver> {
  const taken: Receiver['taken'] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      it.requestCount += 1;
      if (it.status === 200) taken.push({ headers: request.headers, text: Buffer.concat(chunks).toString() });
      response.writeHead(it.status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const it = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/of-a-secret-path`,
    taken,
    requestCount: 0,
    status: 200,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return it;
}
