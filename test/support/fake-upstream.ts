import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isDeepStrictEqual } from 'node:util';

/** A call that a test expects. */
interface ExpectedCall {
  readonly method?: string;
  readonly path: string;
  /** The whole query: an additional, missing or different parameter makes another call. Default: none. */
  readonly query?: Readonly<Record<string, string>>;
  /** Headers that must be present (by value or pattern) or absent (`null`); others are ignored. */
  readonly headers?: Readonly<Record<string, string | RegExp | null>>;
  /** The number of calls: 1 by default, a number, or `any` (0 included). */
  readonly times?: number | 'any';
}

export interface FakeAnswer {
  /** 200 by default. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  /** Sent unchanged instead of `json`. */
  readonly raw?: string | Uint8Array;
  /** How the client finds the end of the body; `close`: only by the end of the connection. Default `length`. */
  readonly framing?: 'length' | 'chunked' | 'close';
  /** Sends this many bytes of the body, then breaks the connection. */
  readonly cutAfter?: number;
  /** Sends nothing before this is settled. */
  readonly after?: Promise<unknown>;
  /** Sends this many bytes of the body, and the rest when `until` is settled. */
  readonly stall?: { readonly afterBytes: number; readonly until: Promise<unknown> };
}

export interface ReceivedCall {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
}

interface Expectation {
  readonly call: ExpectedCall;
  readonly answer: FakeAnswer;
  readonly arrived: PromiseWithResolvers<ReceivedCall>;
  used: number;
}

/**
 * A strict HTTP upstream on a free loopback port: `await using upstream = await fakeUpstream()`. Leaving the scope
 * closes it and throws if a call matched no expectation or an expected call did not come.
 */
export interface FakeUpstream extends AsyncDisposable {
  /** Without a trailing slash. */
  readonly url: string;
  /** Every call, in order of arrival. */
  readonly received: readonly ReceivedCall[];
  /** The first unused expectation that matches a call answers it. `arrived` settles with its first call. */
  expect(call: ExpectedCall, answer: FakeAnswer): { readonly arrived: Promise<ReceivedCall> };
}

export async function fakeUpstream(): Promise<FakeUpstream> {
  const expectations: Expectation[] = [];
  const received: ReceivedCall[] = [];
  const unexpected: string[] = [];

  const server = createServer((request, response) => {
    const call = readCall(request);
    received.push(call);
    const fitting = expectations.filter(({ call: expected }) => fits(expected, call));
    const expectation = fitting.find(({ call: { times = 1 }, used }) => times === 'any' || used < times);
    if (expectation === undefined) {
      unexpected.push(`${shown(call)}${fitting.length > 0 ? ' (once more than expected)' : ''}`);
      response.writeHead(501).end('no such call is expected');
      return;
    }
    expectation.used += 1;
    expectation.arrived.resolve(call);
    void send(response, expectation.answer);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    received,
    expect(call, answer) {
      const arrived = Promise.withResolvers<ReceivedCall>();
      expectations.push({ call, answer, arrived, used: 0 });
      return { arrived: arrived.promise };
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      const unused = expectations.filter(({ call: { times = 1 }, used }) => times !== 'any' && used < times);
      const problems = [
        ...unexpected.map((call) => `unexpected call: ${call}`),
        ...unused.map(
          ({ call, used }) => `expected call did not come${used > 0 ? ' again' : ''}: ${shown(call)}`,
        ),
      ];
      if (problems.length > 0) throw new Error(`fake upstream: ${problems.join('; ')}`);
    },
  };
}

function readCall(request: IncomingMessage): ReceivedCall {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://upstream');
  const query = Object.fromEntries(
    [...new Set(searchParams.keys())].map((name) => [name, searchParams.getAll(name).join('&')]),
  );
  return { method: request.method ?? '', path: pathname, query, headers: request.headers };
}

function fits(expected: ExpectedCall, call: ReceivedCall): boolean {
  if ((expected.method ?? 'GET') !== call.method || expected.path !== call.path) return false;
  if (!isDeepStrictEqual({ ...expected.query }, { ...call.query })) return false;
  return Object.entries(expected.headers ?? {}).every(([name, wanted]) => {
    const sent = call.headers[name.toLowerCase()];
    if (wanted === null || sent === undefined) return wanted === null && sent === undefined;
    return wanted instanceof RegExp ? wanted.test(String(sent)) : wanted === sent;
  });
}

async function send(response: ServerResponse, answer: FakeAnswer): Promise<void> {
  await answer.after;
  if (response.destroyed) return;
  const text = answer.raw ?? (answer.json === undefined ? '' : JSON.stringify(answer.json));
  const body = typeof text === 'string' ? Buffer.from(text) : text;
  if (answer.raw === undefined && answer.json !== undefined)
    response.setHeader('content-type', 'application/json');
  if (answer.framing === undefined || answer.framing === 'length')
    response.setHeader('content-length', body.length);
  if (answer.framing === 'close') {
    response.removeHeader('transfer-encoding');
    response.setHeader('connection', 'close');
    response.useChunkedEncodingByDefault = false;
  }
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
  response.writeHead(answer.status ?? 200);
  const pauseAt = answer.cutAfter ?? answer.stall?.afterBytes;
  if (pauseAt === undefined) {
    response.end(body);
    return;
  }
  response.flushHeaders();
  await new Promise((resolve) => response.write(body.subarray(0, pauseAt), resolve));
  if (answer.cutAfter !== undefined) {
    response.socket?.destroySoon();
    return;
  }
  await answer.stall?.until;
  if (!response.destroyed) response.end(body.subarray(pauseAt));
}

function shown(call: Pick<ExpectedCall, 'method' | 'path' | 'query'>): string {
  const query = new URLSearchParams(call.query).toString();
  return `${call.method ?? 'GET'} ${call.path}${query === '' ? '' : `?${query}`}`;
}
