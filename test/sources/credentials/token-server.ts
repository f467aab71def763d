import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

interface TokenCall {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
  readonly form: Readonly<Record<string, string>>;
}

export interface TokenAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly raw?: string;
  /** Sends nothing before this is settled. */
  readonly after?: Promise<unknown>;
}

export interface TokenServer extends AsyncDisposable {
  readonly url: string;
  readonly calls: readonly TokenCall[];
}

/**
 * An authorization server or metadata service on a free loopback port. `answer` gets the call and its number from 1.
 */
export async function tokenServer(
  answer: (call: TokenCall, number: number) => TokenAnswer,
): Promise<TokenServer> {
  const calls: TokenCall[] = [];
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://server');
    const call = {
      method: request.method ?? '',
      path: pathname,
      query: Object.fromEntries(searchParams),
      headers: request.headers,
      form: Object.fromEntries(new URLSearchParams(await text(request))),
    };
    calls.push(call);
    const { status = 200, headers = {}, json, raw, after } = answer(call, calls.length);
    await after;
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(raw ?? JSON.stringify(json));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
