/**
 * Answers cached responses before Fastify routes a request. Fastify gets every other request unchanged: its routes give the
 * same bytes (test/http/hot-path.test.ts) and fill the cache.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
// The global of this name is a getter, which takes as long as the clock itself.
import { performance } from 'node:perf_hooks';
import type { Grant } from '../../domain/scope.ts';
import type { TokenReader } from '../../snapshot/document/answer.ts';
import { bearerToken } from '../auth.ts';
import { cutWhenIdle } from '../protocol/drain.ts';
import { isYoungEnough } from '../protocol/max-age.ts';
import { accepts } from '../protocol/negotiate.ts';
import type { RateLimit } from '../protocol/rate-limit.ts';
import { type AddressOf, addressKey, hasBadHost, requestIdOf } from '../protocol/request.ts';
import type { Pipelined } from '../protocol/turns.ts';
import type { RecordedRequest, Recorder } from '../record-requests.ts';
import type { ResponseCache } from './response-cache.ts';

export interface HotPathDeps {
  readonly responses: ResponseCache;
  readonly tokens: TokenReader;
  readonly addressOf: AddressOf;
  readonly rateLimit: RateLimit | undefined;
  admit(socket: Socket): void;
  /** True while the server closes: only Fastify's routes answer then. */
  isClosing(): boolean;
  readonly recorder: Recorder;
  readonly idleTimeoutMs: number;
  readonly pipelined: Pipelined;
}

/** Returns a listener for `request` events. @param ordinary Fastify's listener */
export function hotPath(deps: HotPathDeps, ordinary: RequestListener): RequestListener {
  const { responses, tokens, rateLimit, addressOf, admit, isClosing, recorder, idleTimeoutMs, pipelined } =
    deps;

  function grantOf(request: IncomingMessage): Grant | undefined {
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) return undefined;
    const found = tokens.verify(token, () => addressKey(addressOf(request)));
    if (!(found instanceof Promise)) return found;
    // The ordinary route waits for the same lookup, and reports its failure.
    found.catch(() => {});
    return undefined;
  }

  function answer(request: IncomingMessage, response: ServerResponse): boolean {
    const { method, url = '' } = request;
    if (method !== 'GET' && method !== 'HEAD') return false;
    const found = responses.find(url);
    if (!found || isClosing()) return false;
    const started = performance.now();
    // The answer waits in memory for those before it.
    const waits = response.socket === null;
    if (waits && !pipelined.hasRoom(request.socket)) return false;
    if (hasBadHost(request) || !accepts(request.headers)) return false;
    const grant = grantOf(request);
    const cached = grant && responses.select(found, grant.organizationId);
    if (!cached || !grant.scopes.includes(cached.scope) || !cached.prepared.hasCodingFor(request))
      return false;
    // The ordinary route refuses old data.
    if (!isYoungEnough(request.headers, cached.prepared.answer.asOf)) return false;
    const counted = rateLimit?.count(grant.tokenId);
    // The ordinary route refuses the request.
    if (counted?.isExceeded) return false;
    admit(request.socket);
    const id = requestIdOf(request);
    if (waits) pipelined.add(request, response);
    const status = cached.prepared.write(request, response, id, counted?.fields);
    if (response.writableLength > 0) cutWhenIdle(request, idleTimeoutMs);
    responses.hits += 1;
    recorder.answered(
      cached.route,
      new HotRequest(request, id, grant, addressOf),
      status,
      performance.now() - started,
    );
    return true;
  }

  return (request, response) => {
    if (!answer(request, response)) ordinary(request, response);
  };
}

/** The recorded part of a hot request. The address is computed only for a line in the log. */
class HotRequest implements RecordedRequest {
  readonly id: string;
  readonly grant: Grant;
  readonly tier = 'memory';
  readonly #raw: IncomingMessage;
  readonly #addressOf: AddressOf;

  constructor(raw: IncomingMessage, id: string, grant: Grant, addressOf: AddressOf) {
    this.#raw = raw;
    this.id = id;
    this.grant = grant;
    this.#addressOf = addressOf;
  }

  get method(): string {
    return this.#raw.method ?? '';
  }

  get ip(): string {
    return this.#addressOf(this.#raw);
  }
}
