/** The HTTP API: its hooks and routes. The caller passes the readers of data. */
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { Logger } from 'pino';
import { Slice } from '../domain/event-loop.ts';
import { lazily } from '../domain/lazily.ts';
import type { RequestOutcome } from '../domain/request-outcome.ts';
import type { CatalogueReader, ClusterReader, TokenReader } from '../snapshot/document/answer.ts';
import { encodeBody } from '../snapshot/document/body.ts';
import { type HotPathDeps, hotPath } from './hot/hot-path.ts';
import type { ResponseCache } from './hot/response-cache.ts';
import { type BeforeAnswer, operationFinder, unroutedOperation } from './hot/unrouted.ts';
import { addOperation, type DescribedOperation, type Operation, type OperationDeps } from './operation.ts';
import { withoutBodies } from './protocol/bodies.ts';
import { type Admission, limitConnections } from './protocol/connection-limits.ts';
import { type CorsOrigins, corsListener } from './protocol/cors.ts';
import { deadline } from './protocol/deadline.ts';
import { answerBefore, cutWhenIdle, type Drain, drainOnClose } from './protocol/drain.ts';
import { DEFAULT_HTTP_LIMITS, type HttpLimits } from './protocol/limits.ts';
import type { FindSource } from './protocol/max-age.ts';
import { accepts } from './protocol/negotiate.ts';
import { refuseUnderPressure, watchEventLoop } from './protocol/pressure.ts';
import { NOT_ACCEPTABLE, Problem, plainProblem, sendProblem } from './protocol/problem.ts';
import { RateLimit } from './protocol/rate-limit.ts';
import { clientAddress, hasBadHost, isProxyOf } from './protocol/request.ts';
import { answerUpgradesAndExpects, bodyRefuser, type Refuse, refuser } from './protocol/transport.ts';
import { inOrder, Pipelined, Turns } from './protocol/turns.ts';
import { type InLogContext, recorder } from './record-requests.ts';
import { clusterOperations } from './routes/clusters.ts';
import { type AddPage, addHealth, HEALTH_PATHS, type PageHandler, type Readiness } from './routes/health.ts';
import { machineOperations } from './routes/machines.ts';
import { addEveryPath, addNotFound } from './routes/not-found.ts';
import { answerSender, sendPublic } from './send.ts';
import { createServer } from './server.ts';
import { addStreamOperation, type StreamOperation } from './stream-operation.ts';

export interface ApiPart {
  readonly operations?: readonly Operation[];
  readonly streams?: readonly StreamOperation[];
  /** Adds routes that are no operations. `described` documents them. */
  readonly addRoutes?: (app: FastifyInstance, deps: RouteDeps) => void;
  readonly described?: readonly DescribedOperation[];
}

export interface RouteDeps extends OperationDeps {
  readonly limits: HttpLimits;
  /** Streams. The server ends them when it closes. */
  readonly endless: Set<{ end(): void }>;
}

export type ApiFeature = (limits: HttpLimits) => ApiPart;

export interface ApiDeps {
  readonly catalogue: CatalogueReader;
  readonly clusters: ClusterReader;
  readonly tokens: TokenReader;
  /** Called once, for the first request of any route outside the contract. */
  readonly features?: () => Promise<readonly ApiFeature[]>;
  readiness(): Promise<Readiness>;
  readonly logger: Logger | false;
  /** Addresses and CIDR blocks of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustProxy?: readonly string[] | undefined;
  readonly version: string;
  /** The prefix of all paths inside another application; empty by default. */
  readonly basePath?: string;
  /** Whether `/docs` and `/llms.txt` are served; false by default. */
  readonly docs?: boolean;
  observe?(facts: RequestOutcome): void;
  readonly limits?: Partial<HttpLimits>;
  /** The logged share of successful answers, from 0 to 1 (default). All other answers are logged. */
  readonly logSuccesses?: number;
  /** Without it, Fastify routes every request. */
  readonly responses?: ResponseCache | undefined;
  /** Without them there are no CORS headers. */
  readonly corsOrigins?: CorsOrigins | undefined;
  /** Finds when data that is too old for a request is read again. */
  readonly findSource?: FindSource | undefined;
  /** Adds hooks that see every request of a route. */
  addHooks?(app: FastifyInstance): void;
  readonly inLogContext?: InLogContext;
}

const FULL = new Problem(503, {
  detail: 'All connections of this process are in use; try again after the pause in Retry-After.',
  headers: { 'retry-after': '1' },
});
const BAD_HOST = plainProblem(400, 'HTTP/1.1 asks for exactly one Host header field.');

export interface Api extends FastifyInstance {
  /** Makes the second router, in slices, before a request waits for it. */
  loadRoutes(): Promise<unknown>;
}

/**
 * Builds the server with the routes of the contract and of health. `loadRoutes`, or the first request of another route, makes a second
 * router, with the routes of features and of the API's description. From then on the second router has all requests.
 */
export function buildApp(deps: ApiDeps): Api {
  const limits: HttpLimits = { ...DEFAULT_HTTP_LIMITS, ...deps.limits };
  const { logger, logSuccesses = 1 } = deps;
  const record = recorder({ logger, observe: deps.observe?.bind(deps), logSuccesses, quiet: HEALTH_PATHS });
  const app = createServer(deps.trustProxy ?? [], limits, record);
  // Added before the hook that waits for answers: only the server ends a stream.
  const endless = new Set<{ end(): void }>();
  app.addHook('preClose', (done) => {
    for (const each of endless) each.end();
    done();
  });
  const drain = drainOnClose(app, limits.drainMs);
  const admit = (socket: Socket) => admission.admit(socket);
  const isLate = watchEventLoop(app, limits.maxEventLoopDelayMs);
  const answering: RouteDeps = {
    tokens: deps.tokens,
    admit,
    rateLimit: limits.requestsPerMinute > 0 ? new RateLimit(limits.requestsPerMinute) : undefined,
    recorder: record,
    pressure: refuseUnderPressure(isLate),
    sendAnswer: answerSender(limits.idleTimeoutMs, drain.closeLater),
    withDeadline: deadline(limits.answerTimeoutMs),
    turns: new Turns(limits.maxEventLoopDelayMs),
    responses: deps.responses,
    findSource: deps.findSource ?? (async () => undefined),
    limits,
    endless,
  };
  const refuse = refuser(record, limits.idleTimeoutMs);
  const { inLogContext } = deps;
  const beforeAnswer: BeforeAnswer = (request, response, status) => {
    cutWhenIdle(request, limits.idleTimeoutMs);
    drain.closeLater(response);
    admission.answers(request, response, status);
  };
  const addHooks = (router: FastifyInstance) => {
    if (inLogContext)
      router.addHook('onRequest', ({ id: requestId }, _, done) => inLogContext({ requestId }, done));
    addHeaders(router, beforeAnswer);
    deps.addHooks?.(router);
  };
  const operations = operationsOf(deps);
  let route: RequestListener | undefined;
  const allRoutes = lazily(async () => {
    const features = (await deps.features?.()) ?? [];
    const router = createServer(deps.trustProxy ?? [], limits, record);
    addHooks(router);
    await addRoutes(router, deps, answering, operations, features);
    await router.ready();
    route = router.routing;
    return router;
  });
  answerBefore(app.server, (first) => (request, response) => {
    // Only the framework that closes adds `Connection: close`.
    const listener = drain.isClosing() ? first : (route ?? first);
    listener(request, response);
  });
  const unrouted = operations.map((each) => unroutedOperation(each, answering, beforeAnswer));
  addListeners(app, deps, answering, drain, refuse, { findOperation: operationFinder(unrouted), isLate });
  // Added last: its listener precedes all others.
  const admission: Admission = limitConnections(app.server, {
    max: limits.maxConnections,
    setting: 'MAX_CONNECTIONS',
    idleMs: limits.strangerIdleMs,
    checkEveryMs: limits.checkIntervalMs,
    probes: HEALTH_PATHS,
    refuse: (request, response) => refuse(FULL, request, response),
    isProxy: isProxyOf(deps.trustProxy ?? []),
    logger,
  });
  const forward = async (request: FastifyRequest, reply: FastifyReply) => {
    const router = await allRoutes();
    reply.hijack();
    // Its client may have left.
    if (!reply.raw.destroyed) router.routing(request.raw, reply.raw);
  };
  // The hooks of the second router see a forwarded request.
  app.register((scope, _, done) => {
    // The last part of `/v1/machines/search` is no id.
    scope.addHook('onRequest', (request, reply, done) => {
      const { id = '0' } = request.params as { id?: string };
      if (/^\d+$/.test(id)) done();
      else forward(request, reply).catch(done);
    });
    addHooks(scope);
    for (const operation of operations) addOperation(scope, operation, answering);
    addHealthPages(scope, deps, answering);
    done();
  });
  addEveryPath(app, forward);
  return Object.assign(app, { loadRoutes: allRoutes });
}

function addHeaders(app: FastifyInstance, beforeAnswer: BeforeAnswer): void {
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
    beforeAnswer(request.raw, reply.raw, reply.statusCode);
    done(null, payload);
  });
}

/** Puts the hot path and CORS in front of the framework. */
function addListeners(
  app: FastifyInstance,
  deps: ApiDeps,
  answering: RouteDeps,
  drain: Drain,
  refuse: Refuse,
  unrouted: Pick<HotPathDeps, 'findOperation' | 'isLate'>,
): void {
  const { trustProxy = [], corsOrigins: origins, inLogContext } = deps;
  const { limits, recorder, tokens, admit, rateLimit, responses, withDeadline } = answering;
  const { isClosing, closeLater } = drain;
  const { idleTimeoutMs } = limits;
  const addressOf = clientAddress(trustProxy);
  const pipelined = new Pipelined();
  answerBefore(app.server, (ordinary) => inOrder(ordinary, refuse, pipelined));
  if (responses) {
    const hot = {
      responses,
      tokens,
      rateLimit,
      addressOf,
      admit,
      isClosing,
      recorder,
      idleTimeoutMs,
      pipelined,
      withDeadline,
      inLogContext,
      ...unrouted,
    };
    answerBefore(app.server, (ordinary) => hotPath(hot, ordinary));
  }
  if (origins) {
    const cors = { origins, addressOf, recorder, closeLater };
    answerBefore(app.server, (ordinary) => corsListener(cors, ordinary));
  }
  answerBefore(app.server, (ordinary) => withoutBodies(ordinary, bodyRefuser(recorder, refuse)));
  answerUpgradesAndExpects(app.server, recorder, refuse);
}

/** The operations of the contract. */
const operationsOf = ({ catalogue, clusters }: ApiDeps): Operation[] => [
  ...machineOperations(catalogue),
  ...clusterOperations(clusters),
];

async function addRoutes(
  app: FastifyInstance,
  deps: ApiDeps,
  answering: RouteDeps,
  contract: readonly Operation[],
  features: readonly ApiFeature[],
): Promise<void> {
  const { limits, pressure } = answering;
  const slice = new Slice();
  const parts: ApiPart[] = [];
  for (const open of features) {
    parts.push(open(limits));
    await slice.next();
  }
  const operations = [...contract, ...parts.flatMap(({ operations = [] }) => operations)];
  const streams = parts.flatMap((part) => part.streams ?? []);
  for (const add of [
    ...operations.map((operation) => () => addOperation(app, operation, answering)),
    ...streams.map((operation) => () => addStreamOperation(app, operation, answering)),
    ...parts.map(
      ({ addRoutes }) =>
        () =>
          addRoutes?.(app, answering),
    ),
  ]) {
    add();
    if (slice.isOver) await slice.next();
  }
  const documented = [...operations, ...streams, ...parts.flatMap(({ described = [] }) => described)];

  addHealthPages(app, deps, answering);
  const openPaths: string[] = [];
  const page: AddPage = (path, handler) => {
    openPaths.push(path);
    addPage(app, answering, path, [pressure], handler);
  };
  const { version, basePath = '' } = deps;
  const document = lazily(async () => {
    const { openApiDocument } = await import('./openapi.ts');
    return encodeBody(Buffer.from(JSON.stringify(openApiDocument(documented, version, basePath))));
  });
  page(
    '/openapi.json',
    negotiated(async (request, reply) => sendPublic(request, reply, await document())),
  );
  if (deps.docs) {
    const { addReference } = await import('./routes/reference.ts');
    addReference({ operations: documented, basePath, page });
  }

  const known = [
    ...documented.map(({ path }) => ({ path, open: false })),
    ...[...HEALTH_PATHS, ...openPaths].map((path) => ({ path, open: true })),
  ];
  addNotFound(app, known, answering);
}

/** A busy process must not look dead to a monitor, so no pressure refuses these. */
function addHealthPages(app: FastifyInstance, deps: ApiDeps, answering: RouteDeps): void {
  const { withDeadline, recorder } = answering;
  const page: AddPage = (path, handler) => addPage(app, answering, path, [], negotiated(handler));
  addHealth(() => withDeadline(deps.readiness()), page, recorder.failed);
}

function addPage(
  app: FastifyInstance,
  { recorder }: RouteDeps,
  path: string,
  onRequest: onRequestHookHandler[],
  handler: PageHandler,
): void {
  app.route({
    method: ['GET', 'HEAD'],
    url: path,
    onRequest,
    onResponse: (request, reply, done) => {
      recorder.answered(path, request, reply.statusCode, reply.elapsedTime);
      done();
    },
    handler,
  });
}

const negotiated =
  (handler: PageHandler): PageHandler =>
  async (request, reply) =>
    accepts(request.headers) ? handler(request, reply) : sendProblem(reply, NOT_ACCEPTABLE);
