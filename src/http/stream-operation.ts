/** An operation whose answer is sent as it comes. Who may ask, and what is refused, is as for any other one. */

import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Grant } from '../domain/scope.ts';
import { type Tier, Unavailable } from '../snapshot/document/answer.ts';
import { guard, guardHook } from './auth.ts';
import {
  grantOf,
  type OperationBase,
  type OperationDeps,
  routePattern,
  startClock,
  valuesOf,
} from './operation.ts';
import { lifeOf } from './places.ts';
import { type Parameters, requestSchemas, type Values } from './protocol/parameters.ts';
import { Problem, sendProblem } from './protocol/problem.ts';
import type { Recorder } from './record.ts';
import { type TokenCheck, TokenChecks } from './token-check.ts';

export interface StreamAnswer {
  readonly status: 200 | 206 | 304;
  readonly headers: Readonly<Record<string, string>>;
  readonly tier: Tier;
  /** Absent where there is none to send. What it throws ends the connection: the answer must not look whole. */
  readonly body?: AsyncIterable<Buffer>;
}

/** What a request asks for besides its parameters. */
export interface StreamRequest {
  readonly grant: Grant;
  readonly headers: IncomingHttpHeaders;
  /** Ends with the answer, or when its client goes. */
  readonly life: AbortSignal;
  /** HEAD: no body will be sent. */
  readonly isHead: boolean;
}

export interface StreamOperation<P extends Parameters = Parameters> extends OperationBase<P> {
  /** Rejects with `Unavailable`. */
  open(values: Values<P>, request: StreamRequest): Promise<StreamAnswer | Problem>;
}

/** Ties the type of `open`'s values to the parameters, then forgets it. */
export function streamOperation<const P extends Parameters>(definition: StreamOperation<P>): StreamOperation {
  return { ...definition, open: (values, request) => definition.open(values as Values<P>, request) };
}

/** Routes GET and HEAD. */
export function addStreamOperation(
  app: FastifyInstance,
  { path, scope, parameters, isStrict, open }: StreamOperation,
  deps: Pick<OperationDeps, 'tokens' | 'admit' | 'recorder' | 'pressure' | 'withDeadline' | 'rateLimit'>,
): void {
  const { recorder, tokens, withDeadline } = deps;
  const checks = new TokenChecks(tokens);
  const answered = (request: FastifyRequest, status: number) =>
    recorder.answered(path, request, status, performance.now() - request.startedAt);

  app.route({
    method: ['GET', 'HEAD'],
    url: routePattern(path),
    schema: requestSchemas(path, parameters, isStrict),
    onRequest: [startClock, deps.pressure, guardHook(guard(deps, scope))],
    onSend: (request, reply, payload, done) => {
      // A stream is told of when it has ended, however it does.
      if (payload instanceof Readable) reply.raw.once('close', () => answered(request, reply.statusCode));
      else answered(request, reply.statusCode);
      done(null, payload);
    },
    handler: async (request, reply) => {
      const asked: StreamRequest = {
        grant: grantOf(request),
        headers: request.headers,
        life: lifeOf(request.raw, reply.raw),
        isHead: request.method === 'HEAD',
      };
      const answer = await withDeadline(open(valuesOf(request), asked));
      if (asked.life.aborted) return reply.hijack();
      if (answer instanceof Problem) return sendProblem(reply, answer);
      request.tier = answer.tier;
      reply.code(answer.status).headers(answer.headers);
      if (!answer.body) return reply.send();
      request.lasts = true;
      const pieces = whileValid(answer.body, () => checks.of(request));
      return reply.send(Readable.from(told(pieces, recorder, request), { objectMode: false }));
    },
  });
}

/** The same pieces; the connection ends when the token does. @param check made once somebody takes the first of them */
async function* whileValid(pieces: AsyncIterable<Buffer>, check: () => TokenCheck): AsyncGenerator<Buffer> {
  let isInvalid = false;
  const token = check();
  const unwatch = token.watch(() => {
    isInvalid = true;
  });
  try {
    for await (const piece of pieces) {
      await token.look();
      if (isInvalid) throw new Unavailable('the token of the request is not valid any more');
      yield piece;
    }
  } finally {
    unwatch();
  }
}

/** The same pieces; a failure amid them is told, since the client only sees that its connection ends. */
async function* told(
  body: AsyncIterable<Buffer>,
  recorder: Recorder,
  request: FastifyRequest,
): AsyncGenerator<Buffer> {
  try {
    yield* body;
  } catch (error) {
    if (error instanceof Unavailable) recorder.unavailable(error, request);
    else recorder.failed(error, request);
    throw error;
  }
}
