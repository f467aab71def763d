/** The HTTP API: puts hooks and routes together. What it answers with is handed to it. */
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';
import type { Logger } from 'pino';
import {
  type CatalogueReader,
  type ClusterReader,
  type TokenReader,
  Unavailable,
} from '../snapshot/document/answer.ts';
import { encodeBody } from '../snapshot/document/body.ts';
import type { ApiFeature } from './feature.ts';
import { hotPath } from './hot-path.ts';
import { openApiDocument } from './openapi.ts';
import { addOperation } from './operation.ts';
import { type Admission, limitConnections } from './protocol/admission.ts';
import { cutWhenIdle, drainOnClose } from './protocol/connections.ts';
import { type CorsOrigins, corsListener } from './protocol/cors.ts';
import { deadline } from './protocol/deadline.ts';
import { DEFAULT_HTTP_LIMITS, type HttpLimits } from './protocol/limits.ts';
import { accepts } from './protocol/negotiate.ts';
import { InvalidRequest, validatorOf } from './protocol/parameters.ts';
import { Overloaded, refuseUnderPressure } from './protocol/pressure.ts';
import {
  INTERNAL_ERROR,
  NOT_ACCEPTABLE,
  plainProblem,
  sendProblem,
  unavailable,
} from './protocol/problem.ts';
import { addRateLimit } from './protocol/rate-limit.ts';
import { clientAddress, hasBadHost, isProxyOf, mendedTarget, requestIdOf } from './protocol/request.ts';
import { answerUpgradesAndExpects, clientErrorHandler } from './protocol/transport.ts';
import { type RequestOutcome, recorder } from './record.ts';
import type { ResponseCache } from './response-cache.ts';
import { clusterOperations } from './routes/clusters.ts';
import { addHealth, HEALTH_PATHS, type Readiness } from './routes/health.ts';
import { machineOperations } from './routes/machines.ts';
import { addNotFound } from './routes/not-found.ts';
import { providerOperations } from './routes/providers.ts';
import { addReference } from './routes/reference.ts';
import { answerSender, sendPublic } from './send.ts';
import { addStreamOperation } from './stream-operation.ts';

export interface ApiDeps {
  readonly catalogue: CatalogueReader;
  readonly clusters: ClusterReader;
  readonly tokens: TokenReader;
  /** Further operations. */
  readonly features?: readonly ApiFeature[];
  /** What `/readyz` tells everybody. */
  readiness(): Promise<Readiness>;
  readonly logger: Logger | false;
  /** Addresses and CIDR blocks of proxies whose `X-Forwarded-For` is believed. */
  readonly trustProxy?: readonly string[] | undefined;
  /** The release, as `/openapi.json` shows it. */
  readonly version: string;
  /** What comes before every path where somebody else's application has put the API; none unless given. */
  readonly basePath?: string;
  /** Whether `/docs` and `/llms.txt` are there; not unless given. */
  readonly docs?: boolean;
  /** Hears of every answer, also of those to what was no request. */
  observe?(facts: RequestOutcome): void;
  readonly limits?: Partial<HttpLimits>;
  /** The share of successful answers that are logged, from 0 to 1; all unless given. Every other one is. */
  readonly logSuccesses?: number;
  /** Answers that are given again, before Fastify routes the request. Without it every request takes the ordinary way. */
  readonly responses?: ResponseCache | undefined;
  /** Origins whose pages may read the answers in a browser. Without them nothing is done for other origins. */
  readonly corsOrigins?: CorsOrigins | undefined;
  /** Does the rest of a request: what is logged meanwhile is of it. Only called for a request that takes the ordinary way. */
  inRequest?(requestId: string, work: () => void): void;
}

type OpenHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

const BAD_TARGET = plainProblem(
  400,
  'The request target is not a well-formed path: its percent-encoding is broken.',
);
const BAD_HOST = plainProblem(400, 'HTTP/1.1 asks for exactly one Host header field.');

/** Builds the API; nothing listens yet. */
export function buildApp(deps: ApiDeps): FastifyInstance {
  const limits: HttpLimits = { ...DEFAULT_HTTP_LIMITS, ...deps.limits };
  const withDeadline = deadline(limits.answerTimeoutMs);
  const { logger, tokens, responses, version, basePath = '', trustProxy = [], logSuccesses = 1 } = deps;
  const record = recorder({ logger, observe: deps.observe?.bind(deps), logSuccesses, quiet: HEALTH_PATHS });

  const app: FastifyInstance = Fastify({
    // Lines of our own, one a request, instead of a child logger for each.
    logger: false,
    genReqId: requestIdOf,
    ...(trustProxy.length > 0 ? { trustProxy: [...trustProxy] } : {}),
    routerOptions: {
      maxParamLength: limits.maxHeaderSize,
    },
    // Zod validates. The framework's own compilers would be a quarter of its loading.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    exposeHeadRoutes: false,
    // A request that arrives while the server closes is answered: whoever sent it was not told in time.
    return503OnClosing: false,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    http: {
      maxHeaderSize: limits.maxHeaderSize,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.checkIntervalMs,
      // Checked below, where the answer can say so.
      requireHostHeader: false,
      // Two Authorization or Host fields must not look like the first of them alone.
      joinDuplicateHeaders: true,
    },
    clientErrorHandler: clientErrorHandler(record),
    frameworkErrors: (_, request, reply) => {
      const mended = mendedTarget(request.raw.url ?? '');
      if (mended !== undefined) {
        request.raw.url = mended;
        app.routing(request.raw, reply.raw);
        return;
      }
      cutWhenIdle(request.raw, limits.idleTimeoutMs);
      sendProblem(reply.header('x-request-id', request.id), BAD_TARGET);
      record.refused(request.method, BAD_TARGET.status, request.id, undefined);
    },
  });

  app.decorateRequest('grant', undefined);
  app.decorateRequest('tier', undefined);
  app.decorateRequest('startedAt', 0);
  app.decorateRequest('lasts', false);
  app.setValidatorCompiler(validatorOf);
  app.setErrorHandler((error: FastifyError, request, reply) => {
    if (error instanceof InvalidRequest) return sendProblem(reply, error.problem);
    if (error instanceof Unavailable) {
      // Overload is told by its answers: a line more for each would add to it.
      if (!(error instanceof Overloaded)) record.unavailable(error, request);
      return sendProblem(reply, unavailable(error.retryAfterSeconds));
    }
    record.failed(error, request);
    return sendProblem(reply, INTERNAL_ERROR);
  });
  const { inRequest } = deps;
  if (inRequest) app.addHook('onRequest', (request, _, done) => inRequest(request.id, () => done()));
  // Before what waits for answers that are under way: a stream has no end of its own.
  const endless = new Set<{ end(): void }>();
  app.addHook('preClose', (done) => {
    for (const each of endless) each.end();
    done();
  });
  const { isClosing, tellToClose } = drainOnClose(app, limits.drainMs);
  app.addHook('onRequest', (request, reply, done) => {
    if (!hasBadHost(request.raw)) {
      done();
      return;
    }
    // No hook of an operation will.
    request.startedAt = performance.now();
    sendProblem(reply, BAD_HOST);
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    reply.header('x-request-id', request.id);
    cutWhenIdle(request.raw, limits.idleTimeoutMs);
    tellToClose(reply.raw);
    admission.answers(reply.raw, reply.statusCode);
    done(null, payload);
  });
  const pressure = refuseUnderPressure(app, limits.maxEventLoopDelayMs);
  const rateLimit = limits.requestsPerMinute > 0 ? addRateLimit(app, limits.requestsPerMinute) : undefined;
  const addressOf = clientAddress(trustProxy);
  const admit = (socket: Socket) => admission.admit(socket);
  // Where requests are counted, all of them take the route that counts.
  if (responses && !rateLimit) {
    const { idleTimeoutMs } = limits;
    const hot = { responses, tokens, addressOf, admit, isClosing, recorder: record, idleTimeoutMs };
    answerBefore(app, (ordinary) => hotPath(hot, ordinary));
  }
  const { corsOrigins: origins } = deps;
  if (origins) {
    const cors = { origins, addressOf, recorder: record, tellToClose };
    answerBefore(app, (ordinary) => corsListener(cors, ordinary));
  }
  answerUpgradesAndExpects(app.server, record, limits.idleTimeoutMs);
  // Last: the listeners above look for the framework's own, which is the first.
  const admission: Admission = limitConnections(app.server, {
    max: limits.maxConnections,
    idleMs: limits.strangerIdleMs,
    checkEveryMs: limits.checkIntervalMs,
    isProxy: isProxyOf(trustProxy),
    logger,
  });
  const sendAnswer = answerSender({ idleTimeoutMs: limits.idleTimeoutMs, tellToClose });

  const parts = (deps.features ?? []).map((open) => open(limits));
  const operations = [
    ...providerOperations(deps.catalogue),
    ...machineOperations(deps.catalogue),
    ...clusterOperations(deps.clusters),
    ...parts.flatMap(({ operations = [] }) => operations),
  ];
  const streams = parts.flatMap((part) => part.streams ?? []);
  const answering = {
    tokens,
    admit,
    rateLimit,
    recorder: record,
    pressure,
    sendAnswer,
    withDeadline,
    responses,
  };
  for (const operation of operations) addOperation(app, operation, answering);
  for (const operation of streams) addStreamOperation(app, operation, answering);
  for (const { addRoutes } of parts) addRoutes?.(app, { ...answering, limits, endless });
  const documented = [...operations, ...streams, ...parts.flatMap(({ described = [] }) => described)];

  const openPaths: string[] = [];
  /** A route that asks for no token. */
  function page(path: string, handler: OpenHandler) {
    openPaths.push(path);
    app.route({
      method: ['GET', 'HEAD'],
      url: path,
      // Whoever watches the process must not take it for dead.
      onRequest: HEALTH_PATHS.includes(path) ? [] : [pressure],
      onResponse: (request, reply, done) => {
        record.answered(path, request, reply.statusCode, reply.elapsedTime);
        done();
      },
      handler,
    });
  }
  /** The same, which answers JSON. */
  function open(path: string, handler: OpenHandler) {
    page(path, async (request, reply) =>
      accepts(request.headers) ? handler(request, reply) : sendProblem(reply, NOT_ACCEPTABLE),
    );
  }
  addHealth({ readiness: () => deps.readiness(), withDeadline, open, failed: record.failed });
  let document: ReturnType<typeof encodeBody> | undefined;
  open('/openapi.json', async (request, reply) => {
    document ??= encodeBody(Buffer.from(JSON.stringify(openApiDocument(documented, version, basePath))));
    return sendPublic(request, reply, await document);
  });

  if (deps.docs) addReference({ operations: documented, basePath, page });

  const known = [
    ...documented.map(({ path }) => ({ path, open: false })),
    ...openPaths.map((path) => ({ path, open: true })),
  ];
  addNotFound(app, { known, tokens, admit, withDeadline, rateLimit, pressure, recorder: record });
  return app;
}

/** Puts a listener in front of the one that answers until now. */
function answerBefore(
  { server }: FastifyInstance,
  listener: (ordinary: RequestListener) => RequestListener,
): void {
  const [ordinary] = server.listeners('request') as RequestListener[];
  if (!ordinary) throw new Error('unreachable: the framework listens to its own server');
  server.removeListener('request', ordinary);
  server.on('request', listener(ordinary));
}

function noCompiler(): never {
  throw new Error('no route has a JSON Schema for the framework to compile');
}
