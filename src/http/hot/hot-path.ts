/**
 * Answers before Fastify routes a request: from cached responses, or by a read of the documents, whose answers fill the cache.
 * Fastify gets every other request unchanged. Its routes give the same bytes (test/http/hot-path.test.ts).
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
// The global of this name is a getter, which takes as long as the clock itself.
import { performance } from 'node:perf_hooks';
import type { Grant } from '../../domain/scope.ts';
import { isTracing } from '../../domain/tracer.ts';
import type { TokenReader } from '../../snapshot/document/answer.ts';
import { bearerToken } from '../auth.ts';
import type { WithDeadline } from '../protocol/deadline.ts';
import { cutWhenIdle } from '../protocol/drain.ts';
import { isYoungEnough } from '../protocol/max-age.ts';
import { accepts } from '../protocol/negotiate.ts';
import type { IsLate } from '../protocol/pressure.ts';
import type { RateLimit } from '../protocol/rate-limit.ts';
import { type AddressOf, addressKey, hasBadHost } from '../protocol/request.ts';
import type { Pipelined } from '../protocol/turns.ts';
import type { InLogContext, Recorder } from '../record-requests.ts';
import { problemOf } from '../server.ts';
import type { ResponseCache } from './response-cache.ts';
import { type FoundOperation, UnroutedReply, UnroutedRequest } from './unrouted.ts';

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
  findOperation(target: string): FoundOperation | undefined;
  readonly isLate: IsLate;
  readonly withDeadline: WithDeadline;
  readonly inLogContext: InLogContext | undefined;
}

/** Returns a listener for `request` events. @param ordinary Fastify's listener */
export function hotPath(deps: HotPathDeps, ordinary: RequestListener): RequestListener {
  const { responses, tokens, rateLimit, addressOf, admit, isClosing, recorder, idleTimeoutMs, pipelined } =
    deps;
  const { findOperation, isLate, withDeadline, inLogContext } = deps;

  function verify(request: IncomingMessage) {
    const token = bearerToken(request.headers.authorization);
    return token === undefined ? undefined : tokens.verify(token, () => addressKey(addressOf(request)));
  }

  function answerCached(request: IncomingMessage, response: ServerResponse): boolean {
    const found = responses.find(request.url ?? '');
    if (!found) return false;
    const started = performance.now();
    // The answer waits in memory for those before it.
    const waits = response.socket === null;
    if (waits && !pipelined.hasRoom(request.socket)) return false;
    if (hasBadHost(request) || !accepts(request.headers)) return false;
    const grant = verify(request);
    if (grant instanceof Promise) {
      // `read` or the ordinary route waits for the same lookup, and reports its failure.
      grant.catch(() => {});
      return false;
    }
    const cached = grant && responses.select(found, grant.organizationId);
    if (!cached || !grant.scopes.includes(cached.scope) || !cached.prepared.hasCodingFor(request))
      return false;
    // The ordinary route refuses old data.
    if (!isYoungEnough(request.headers, cached.prepared.answer.asOf)) return false;
    const counted = rateLimit?.count(grant.tokenId, started);
    // The ordinary route refuses the request.
    if (counted?.isExceeded) return false;
    admit(request.socket);
    const unrouted = new UnroutedRequest(request, started, addressOf);
    unrouted.grant = grant;
    unrouted.tier = 'memory';
    if (waits) pipelined.add(request, response);
    const status = cached.prepared.write(request, response, unrouted.id, counted?.fields);
    if (response.writableLength > 0) cutWhenIdle(request, idleTimeoutMs);
    responses.hits += 1;
    recorder.answered(cached.route, unrouted, status, performance.now() - started);
    return true;
  }

  /** Reads the documents of a request. Traced requests are routed, because Fastify's hooks begin their spans. */
  function read(request: IncomingMessage, response: ServerResponse): boolean {
    // A pipelined request waits for the answers before it.
    if (response.socket === null || isTracing() || isLate()) return false;
    const found = findOperation(request.url ?? '');
    if (!found || hasBadHost(request) || !accepts(request.headers)) return false;
    const unrouted = new UnroutedRequest(request, performance.now(), addressOf);
    const reply = new UnroutedReply(response, unrouted);
    let isTaken = false;
    const begin = () => {
      isTaken = verifyAndAnswer(found, reply);
    };
    if (inLogContext) inLogContext({ requestId: unrouted.id }, begin);
    else begin();
    return isTaken;
  }

  /** Returns false for a request that the ordinary route refuses. */
  function verifyAndAnswer(found: FoundOperation, reply: UnroutedReply): boolean {
    const { raw, id } = reply.request;
    const verified = verify(raw);
    if (!(verified instanceof Promise)) return verified !== undefined && answer(found, reply, verified);
    withDeadline(verified).then(
      (grant) => {
        if (grant && answer(found, reply, grant)) return;
        // The log may have lines with this id.
        raw.headers['x-request-id'] = id;
        ordinary(raw, reply.raw);
      },
      (error: unknown) => fail(found, reply, error),
    );
    return true;
  }

  /** The same for a verified token. */
  function answer(found: FoundOperation, reply: UnroutedReply, grant: Grant): boolean {
    const { form, values } = found;
    if (!grant.scopes.includes(form.operation.scope)) return false;
    const counted = rateLimit?.count(grant.tokenId);
    if (counted?.isExceeded) return false;
    const { request } = reply;
    admit(request.raw.socket);
    request.grant = grant;
    request.rateFields = counted?.fields;
    try {
      const answering = form.answer(request, reply, values);
      if (answering instanceof Promise) answering.catch((error: unknown) => fail(found, reply, error));
    } catch (error) {
      fail(found, reply, error);
    }
    return true;
  }

  function fail(found: FoundOperation, reply: UnroutedReply, error: unknown): void {
    const problem = problemOf(error, reply.request, recorder);
    if (problem) found.form.refuse(reply, problem);
  }

  return (request, response) => {
    const { method } = request;
    const isRead = (method === 'GET' || method === 'HEAD') && !isClosing();
    if (!isRead || !(answerCached(request, response) || read(request, response))) ordinary(request, response);
  };
}
