import Fastify, { type FastifyError, type FastifyInstance } from 'fastify';
import { Unavailable } from '../snapshot/document/answer.ts';
import { cutWhenIdle } from './protocol/drain.ts';
import type { HttpLimits } from './protocol/limits.ts';
import { InvalidRequest, validatorOf } from './protocol/parameters.ts';
import { Overloaded } from './protocol/pressure.ts';
import { INTERNAL_ERROR, type Problem, plainProblem, sendProblem, unavailable } from './protocol/problem.ts';
import { repairedTarget, requestIdOf } from './protocol/request.ts';
import { clientErrorHandler } from './protocol/transport.ts';
import { ClientLeft } from './protocol/turns.ts';
import type { RecordedRequest, Recorder } from './record-requests.ts';

const BAD_TARGET = plainProblem(
  400,
  'The request target is not a well-formed path: its percent-encoding is broken.',
);

export function createServer(
  trustProxy: readonly string[],
  limits: HttpLimits,
  record: Recorder,
): FastifyInstance {
  const app: FastifyInstance = Fastify({
    // The recorder logs one line a request, without a child logger for each.
    logger: false,
    genReqId: requestIdOf,
    ...(trustProxy.length > 0 ? { trustProxy: [...trustProxy] } : {}),
    routerOptions: {
      maxParamLength: limits.maxHeaderSize,
    },
    // Zod validates. The framework's compilers would be a quarter of its load time.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    exposeHeadRoutes: false,
    // A client does not know yet that the server closes, so its request is answered.
    return503OnClosing: false,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    http: {
      maxHeaderSize: limits.maxHeaderSize,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      // A hook checks it, and its answer names the problem.
      requireHostHeader: false,
      // The end of a body that no request has takes a sixth of the time of a hot answer. See `withoutBodies`.
      optimizeEmptyRequests: true,
      // Two Authorization or Host fields must not look like the first alone.
      joinDuplicateHeaders: true,
    },
    clientErrorHandler: clientErrorHandler(record),
    frameworkErrors: (_, request, reply) => {
      const repaired = repairedTarget(request.raw.url ?? '');
      if (repaired !== undefined) {
        request.raw.url = repaired;
        app.routing(request.raw, reply.raw);
        return;
      }
      cutWhenIdle(request.raw, limits.idleTimeoutMs);
      sendProblem(reply.header('x-request-id', request.id), BAD_TARGET);
      record.refused(request.method, BAD_TARGET.status, request.id, undefined);
    },
  });
  app.decorateRequest('grant', undefined);
  app.decorateRequest('rateFields', undefined);
  app.decorateRequest('tier', undefined);
  app.decorateRequest('startedAt', 0);
  app.decorateRequest('lasts', false);
  app.setValidatorCompiler(validatorOf);
  addErrors(app, record);
  return app;
}

function addErrors(app: FastifyInstance, record: Recorder): void {
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const problem = problemOf(error, request, record);
    return problem ? sendProblem(reply, problem) : reply.hijack();
  });
}

/** Returns the answer to a failed request, and records the failure; undefined if the client has left. */
export function problemOf(
  error: unknown,
  request: Pick<RecordedRequest, 'id'>,
  record: Recorder,
): Problem | undefined {
  if (error instanceof ClientLeft) return undefined;
  if (error instanceof InvalidRequest) return error.problem;
  if (error instanceof Unavailable) {
    // A log line for each would add load.
    if (!(error instanceof Overloaded)) record.unavailable(error, request);
    return unavailable(error.retryAfterSeconds);
  }
  record.failed(error, request);
  return INTERNAL_ERROR;
}

function noCompiler(): never {
  throw new Error('no route has a JSON Schema for the framework to compile');
}
