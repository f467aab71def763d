import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { RequestOutcome } from '../../src/domain/request-outcome.ts';
import { searchApi } from '../../src/features/search/routes.ts';
import { type Api, type ApiDeps, buildApp } from '../../src/http/app.ts';
import { type MemoryTokens, memoryCatalogue, memoryClusters, memorySearch, memoryTokens } from './readers.ts';

export interface TestApi extends AsyncDisposable {
  readonly app: Api;
  readonly tokens: MemoryTokens;
  /** A valid token of organization 1 with all scopes. */
  readonly token: string;
  readonly observed: readonly RequestOutcome[];
}

/** Limits that a busy machine does not reach. A test of a limit sets its own. */
export const PATIENT = {
  maxEventLoopDelayMs: 0,
  answerTimeoutMs: 120_000,
  idleTimeoutMs: 120_000,
} satisfies ApiDeps['limits'];

/** The API over readers in memory; parts may be overridden. */
export async function testApi({ limits, ...overrides }: Partial<ApiDeps> = {}): Promise<TestApi> {
  const tokens = memoryTokens();
  const observed: RequestOutcome[] = [];
  const app = buildApp({
    catalogue: await memoryCatalogue(),
    clusters: await memoryClusters(),
    features: async () => [searchApi(memorySearch())],
    tokens,
    readiness: async () => ({ ready: true, checks: { catalogue: 'ok' } }),
    logger: false,
    version: '1.2.3',
    observe: (facts) => observed.push(facts),
    limits: { ...PATIENT, ...limits },
    ...overrides,
  });
  return { app, tokens, token: tokens.issue(), observed, [Symbol.asyncDispose]: () => app.close() };
}

/** Listens on a free loopback port. */
export async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ host: '127.0.0.1', port: 0 });
  return (app.server.address() as AddressInfo).port;
}

export interface RawResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends bytes unchanged, reads until the server closes, and returns all responses. */
export async function exchange(
  port: number,
  ...chunks: readonly (string | Buffer)[]
): Promise<RawResponse[]> {
  const socket = connect({ port, host: '127.0.0.1' });
  await once(socket, 'connect');
  const received: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  for (const chunk of chunks) socket.write(chunk);
  await once(socket, 'close');
  return parseResponses(Buffer.concat(received));
}

export function parseResponses(bytes: Buffer): RawResponse[] {
  const responses: RawResponse[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) throw new Error(`no response: ${rest.toString('latin1').slice(0, 200)}`);
    const [statusLine = '', ...lines] = rest.toString('latin1', 0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const length = Number(headers['content-length'] ?? 0);
    responses.push({
      status: Number(statusLine.split(' ')[1]),
      headers,
      body: rest.toString('utf8', end + 4, end + 4 + length),
    });
    rest = rest.subarray(end + 4 + length);
  }
  return responses;
}
