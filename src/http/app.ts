/** The HTTP API: puts hooks and routes together. What it answers with is handed to it. */
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { CatalogueReader, ClusterReader, TokenReader } from '../snapshot/document/answer.ts';
import { encodeBody } from '../snapshot/document/body.ts';
import type { ApiFeature, RouteDeps } from './feature.ts';
import { hotPath } from './hot-path.ts';
import { openApiDocument } from './openapi.ts';
import { addOperation } from './operation.ts';
import { type Admission, limitConnections } from './protocol/admission.ts';
import { cutWhenIdle, type Drain, drainOnClose } from './protocol/connections.ts';
import { type CorsOrigins, corsListener } from './protocol/cors.ts';
import { deadline } from './protocol/deadline.ts';
import { DEFAULT_HTTP_LIMITS, type HttpLimits } from './protocol/limits.ts';
import { accepts } from './protocol/negotiate.ts';
import { refuseUnderPressure } from './protocol/pressure.ts';
import { NOT_ACCEPTABLE, plainProblem, sendProblem } from './protocol/problem.ts';
import { addRateLimit } from './protocol/rate-limit.ts';
import { clientAddress, hasBadHost, isProxyOf } from './protocol/request.ts';
import { answerUpgradesAndExpects } from './protocol/transport.ts';
import { type Recorder, type RequestOutcome, recorder } from './record.ts';
import type { ResponseCache } from './response-cache.ts';
import { clusterOperations } from './routes/clusters.ts';
import { addHealth, HEALTH_PATHS, type Readiness } from './routes/health.ts';
import { machineOperations } from './routes/machines.ts';
import { addNotFound } from './routes/not-found.ts';
import { providerOperations } from './routes/providers.ts';
import { addReference } from './routes/reference.ts';
import { answerSender, sendPublic } from './send.ts';
import { createServer } from './server.ts';
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

const BAD_HOST = plainProblem(400, 'HTTP/1.1 asks for exactly one Host header field.');

/** Builds the API; nothing listens yet. */
export function buildApp(deps: ApiDeps): FastifyInstance {
  const limits: HttpLimits = { ...DEFAULT_HTTP_LIMITS, ...deps.limits };
  const { logger, logSuccesses = 1 } = deps;
  const record = recorder({ logger, observe: deps.observe?.bind(deps), logSuccesses, quiet: HEALTH_PATHS });
  const app = createServer(deps.trustProxy ?? [], limits, record);
  const { inRequest } = deps;
  if (inRequest) app.addHook('onRequest', (request, _, done) => inRequest(request.id, () => done()));
  // Before the hook that waits for answers: a stream ends only when the server ends it.
  const endless = new Set<{ end(): void }>();
  app.addHook('preClose', (done) => {
    for (const each of endless) each.end();
    done();
  });
  const drain = drainOnClose(app, limits.drainMs);
  addHeaders(app, limits, drain.tellToClose, (reply) => admission.answers(reply.raw, reply.statusCode));
  const pressure = refuseUnderPressure(app, limits.maxEventLoopDelayMs);
  const rateLimit = limits.requestsPerMinute > 0 ? addRateLimit(app, limits.requestsPerMinute) : undefined;
  const admit = (socket: Socket) => admission.admit(socket);
  addListeners(app, deps, { limits, record, admit, drain, isRateLimited: rateLimit !== undefined });
  // Last: the listeners above look for the framework's own, which is the first.
  const admission: Admission = limitConnections(app.server, {
    max: limits.maxConnections,
    idleMs: limits.strangerIdleMs,
    checkEveryMs: limits.checkIntervalMs,
    isProxy: isProxyOf(deps.trustProxy ?? []),
    logger,
  });
  addRoutes(app, deps, {
    tokens: deps.tokens,
    admit,
    rateLimit,
    recorder: record,
    pressure,
    sendAnswer: answerSender({ idleTimeoutMs: limits.idleTimeoutMs, tellToClose: drain.tellToClose }),
    withDeadline: deadline(limits.answerTimeoutMs),
    responses: deps.responses,
    limits,
    endless,
  });
  return app;
}

/** Checks the Host field of each request, and adds what every answer has. */
function addHeaders(
  app: FastifyInstance,
  limits: HttpLimits,
  tellToClose: Drain['tellToClose'],
  onAnswer: (reply: FastifyReply) => void,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (!hasBadHost(request.raw)) {
      done();
      return;
    }
    // The hooks of the operation do not run.
    request.startedAt = performance.now();
    sendProblem(reply, BAD_HOST);
  });
  app.addHook('onSend', (request, reply, payload, done) => {
    reply.header('x-request-id', request.id);
    cutWhenIdle(request.raw, limits.idleTimeoutMs);
    tellToClose(reply.raw);
    onAnswer(reply);
    done(null, payload);
  });
}

interface Listening {
  readonly limits: HttpLimits;
  readonly record: Recorder;
  readonly admit: (socket: Socket) => void;
  readonly drain: Drain;
  readonly isRateLimited: boolean;
}

/** Puts the hot path and CORS in front of the framework. */
function addListeners(app: FastifyInstance, deps: ApiDeps, listening: Listening): void {
  const { limits, record: recorder, admit, drain, isRateLimited } = listening;
  const { responses, tokens, trustProxy = [], corsOrigins: origins } = deps;
  const { idleTimeoutMs } = limits;
  const { isClosing, tellToClose } = drain;
  const addressOf = clientAddress(trustProxy);
  // Where requests are counted, all of them take the route that counts.
  if (responses && !isRateLimited) {
    const hot = { responses, tokens, addressOf, admit, isClosing, recorder, idleTimeoutMs };
    answerBefore(app, (ordinary) => hotPath(hot, ordinary));
  }
  if (origins) {
    const cors = { origins, addressOf, recorder, tellToClose };
    answerBefore(app, (ordinary) => corsListener(cors, ordinary));
  }
  answerUpgradesAndExpects(app.server, recorder, idleTimeoutMs);
}

/** Adds the operations, the paths without a token, and the answer for unknown paths. */
function addRoutes(app: FastifyInstance, deps: ApiDeps, answering: RouteDeps): void {
  const { limits, recorder, pressure, withDeadline, tokens, admit, rateLimit } = answering;
  const parts = (deps.features ?? []).map((open) => open(limits));
  const operations = [
    ...providerOperations(deps.catalogue),
    ...machineOperations(deps.catalogue),
    ...clusterOperations(deps.clusters),
    ...parts.flatMap(({ operations = [] }) => operations),
  ];
  const streams = parts.flatMap((part) => part.streams ?? []);
  for (const operation of operations) addOperation(app, operation, answering);
  for (const operation of streams) addStreamOperation(app, operation, answering);
  for (const { addRoutes } of parts) addRoutes?.(app, answering);
  const documented = [...operations, ...streams, ...parts.flatMap(({ described = [] }) => described)];

  const openPaths: string[] = [];
  /** Adds a route that needs no token. */
  function page(path: string, handler: OpenHandler) {
    openPaths.push(path);
    app.route({
      method: ['GET', 'HEAD'],
      url: path,
      // A monitor must not take a busy process for dead.
      onRequest: HEALTH_PATHS.includes(path) ? [] : [pressure],
      onResponse: (request, reply, done) => {
        recorder.answered(path, request, reply.statusCode, reply.elapsedTime);
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
  addHealth({ readiness: () => deps.readiness(), withDeadline, open, failed: recorder.failed });
  const { version, basePath = '' } = deps;
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
  addNotFound(app, { known, tokens, admit, withDeadline, rateLimit, pressure, recorder });
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
