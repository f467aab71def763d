/** Operations with streamed answers. Tokens, parameters and errors are those of other operations. */
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Grant } from '../domain/scope.ts';
import { type Tier, Unavailable } from '../snapshot/document/answer.ts';
import { lifeOf, TokenChecks } from './lasting-answers.ts';
import {
  answerRecorder,
  grantOf,
  type OperationBase,
  type OperationDeps,
  routeOf,
  valuesOf,
} from './operation.ts';
import type { Parameters, Values } from './protocol/parameters.ts';
import { Problem, sendProblem } from './protocol/problem.ts';
import type { Recorder } from './record-requests.ts';

export interface StreamAnswer {
  readonly status: 200 | 206 | 304;
  readonly headers: Readonly<Record<string, string>>;
  readonly tier: Tier;
  /** Absent for an answer without a body. An error in it cuts the connection: the answer must not look complete. */
  readonly body?: AsyncIterable<Buffer>;
}

export interface StreamRequest {
  readonly grant: Grant;
  readonly headers: IncomingHttpHeaders;
  /** Aborts when the answer ends, or its client disconnects. */
  readonly life: AbortSignal;
  readonly isHead: boolean;
}

export interface StreamOperation<P extends Parameters = Parameters> extends OperationBase<P> {
  open(values: Values<P>, request: StreamRequest): Promise<StreamAnswer | Problem>;
}

/** Infers the type of `open`'s values from the parameters, and returns the common type. */
export function streamOperation<const P extends Parameters>(definition: StreamOperation<P>): StreamOperation {
  return { ...definition, open: (values, request) => definition.open(values as Values<P>, request) };
}

export function addStreamOperation(
  app: FastifyInstance,
  operation: StreamOperation,
  deps: Pick<OperationDeps, 'tokens' | 'admit' | 'recorder' | 'pressure' | 'withDeadline' | 'rateLimit'>,
): void {
  const { recorder, tokens, withDeadline } = deps;
  const checks = new TokenChecks(tokens);
  const answered = answerRecorder(deps, operation.path);
  app.route({
    ...routeOf(operation, deps),
    onSend: (request, reply, payload, done) => {
      // A stream is recorded at its end.
      if (payload instanceof Readable) reply.raw.once('close', () => answered(request, reply.statusCode));
      else answered(request, reply.statusCode);
      done(null, payload);
    },
    handler: async (request, reply) => {
      const { headers, method } = request;
      const life = lifeOf(request.raw, reply.raw);
      const streamRequest = { grant: grantOf(request), headers, life, isHead: method === 'HEAD' };
      const answer = await withDeadline(operation.open(valuesOf(request), streamRequest));
      if (life.aborted) return reply.hijack();
      if (answer instanceof Problem) return sendProblem(reply, answer);
      request.tier = answer.tier;
      reply.code(answer.status).headers(answer.headers);
      if (!answer.body) return reply.send();
      request.lasts = true;
      const pieces = validPieces(answer.body, request, checks, recorder);
      return reply.send(Readable.from(pieces, { objectMode: false }));
    },
  });
}

/** Yields the pieces while the token is valid. Logs a failure: the client only sees the end of its connection. */
async function* validPieces(
  pieces: AsyncIterable<Buffer>,
  request: FastifyRequest,
  checks: TokenChecks,
  recorder: Recorder,
): AsyncGenerator<Buffer> {
  let isInvalid = false;
  const token = checks.of(request);
  const unwatch = token.watch(() => {
    isInvalid = true;
  });
  try {
    for await (const piece of pieces) {
      await token.check();
      if (isInvalid) throw new Unavailable('the token of the request is no longer valid');
      yield piece;
    }
  } catch (error) {
    if (error instanceof Unavailable) recorder.unavailable(error, request);
    else recorder.failed(error, request);
    throw error;
  } finally {
    unwatch();
  }
}
