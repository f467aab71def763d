/** The queues' page, as Bull Board draws it. */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { Queue } from 'bullmq';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { includesRole } from '../domain/operator.ts';
import { isChanging } from './access.ts';

/** A function is asked again at every look. */
export type ShownQueues = readonly Queue[] | (() => readonly Queue[]);

/**
 * Adds the page that shows queues, below `path`.
 * @param beforeChange called before a request that changes a queue or a job; the change is not made when it fails
 */
export async function addBoard(
  app: FastifyInstance,
  path: string,
  queues: ShownQueues,
  beforeChange?: (request: FastifyRequest) => Promise<void>,
): Promise<void> {
  const current = typeof queues === 'function' ? queues : () => queues;
  const adapterOf = adapterMaker(false);
  const readOnlyAdapterOf = adapterMaker(true);
  const serverAdapter = new AdapterByRole(
    () => new Map(current().map((queue) => [queue.name, readOnlyAdapterOf(queue)])),
  );
  serverAdapter.setBasePath(path);
  const board = createBullBoard({
    queues: current().map(adapterOf),
    serverAdapter,
    options: { uiConfig: { boardTitle: 'Fleetbook queues' } },
  });
  await app.register(
    (scope, _, done) => {
      scope.addHook('onSend', async (_request, reply, payload) =>
        typeof payload === 'string' && String(reply.getHeader('content-type')).startsWith('text/html')
          ? withWayBack(withoutForeignLinks(payload))
          : payload,
      );
      scope.addHook('onRequest', async (request) => {
        const { signedIn } = request;
        if (signedIn && !includesRole(signedIn.role, 'operator')) serverAdapter.isOfViewer(request.headers);
      });
      scope.addHook('preHandler', async (request, reply) => {
        if (!isChanging(request.method)) return undefined;
        if (!OFFERED.test(request.routeOptions.url ?? '')) return reply.code(403).send(NOT_OFFERED);
        await beforeChange?.(request);
        return undefined;
      });
      if (typeof queues === 'function') {
        scope.addHook('onRequest', (_request, _reply, next) => {
          board.replaceQueues(current().map(adapterOf));
          next();
        });
      }
      scope.register(serverAdapter.registerPlugin());
      done();
    },
    { prefix: path },
  );
}

/**
 * The changes that the board offers. All others are refused, those of later releases of Bull Board included: a job is made and
 * described by Fleetbook alone, and so are the settings of a queue.
 */
const OFFERED =
  /\/api\/queues\/(?:pause|resume|:queueName\/(?:pause|resume|empty|promote|(?:retry|clean)\/:queueStatus|:jobId\/(?:retry|clean|promote)))$/;
const NOT_OFFERED = {
  error: 'Not offered',
  message:
    'The board pauses queues, and retries, promotes and removes jobs. To run a source, use the console.',
};

/** Makes one adapter for each queue. */
function adapterMaker(readOnlyMode: boolean): (queue: Queue) => BullMQAdapter {
  const adapters = new WeakMap<Queue, BullMQAdapter>();
  return (queue) => {
    const known = adapters.get(queue);
    if (known) return known;
    const adapter = new BullMQAdapter(queue, { readOnlyMode });
    adapter.setFormatter('name', titleOf);
    adapters.set(queue, adapter);
    return adapter;
  };
}

type ApiRoutes = Parameters<FastifyAdapter['setApiRoutes']>[0];
type ErrorHandler = Parameters<FastifyAdapter['setErrorHandler']>[0];
type BoardQueues = Parameters<FastifyAdapter['setQueues']>[0];

/** Bull Board knows no roles: a viewer is answered of the same queues as of read-only ones, and shown no button. */
class AdapterByRole extends FastifyAdapter {
  /** Headers are what a handler gets whole of the request. */
  readonly #viewers = new WeakSet<object>();
  readonly #readOnly: () => BoardQueues;

  constructor(readOnly: () => BoardQueues) {
    super();
    this.#readOnly = readOnly;
  }

  /** Notes that a request is a viewer's. */
  isOfViewer(headers: object): void {
    this.#viewers.add(headers);
  }

  override setErrorHandler(handler: ErrorHandler): this {
    return super.setErrorHandler((error) =>
      isRedisAway(error)
        ? { status: 500, body: { error: 'Not now', message: 'The queues’ Redis does not answer.' } }
        : handler(error),
    );
  }

  override setApiRoutes(routes: ApiRoutes): this {
    super.setApiRoutes(
      routes.map((route) => ({
        ...route,
        handler: (request) =>
          route.handler(
            request && this.#viewers.has(request.headers)
              ? { ...request, queues: this.#readOnly() }
              : request,
          ),
      })),
    );
    return this;
  }
}

/** As ioredis says it. */
const isRedisAway = ({ message }: Error): boolean =>
  /^(?:Stream isn't writeable|Connection is closed|Command timed out|connect |Socket)/.test(message);

/** Without the links to other sites that the page is delivered with: they are for its fonts, and the system has some. */
function withoutForeignLinks(html: string): string {
  return html.replaceAll(/^[^\S\n]*<link\b[^>]*\bhref="(?:https?:)?\/\/[^>]*>\n?/gm, '');
}

/** Over the board's own page, which has no place for a link that is always seen. */
const WAY_BACK =
  '<a href="/" style="position:fixed;left:.75rem;bottom:.75rem;z-index:1000;padding:.3rem .7rem;border-radius:.25rem;background:#1d3a5f;color:#fff;font:14px system-ui,sans-serif">Fleetbook console</a>';
const withWayBack = (html: string): string => html.replace('</body>', `${WAY_BACK}</body>`);

interface ShownJob {
  readonly name: string;
  readonly data?: { readonly sourceId?: unknown } | undefined;
  readonly returnvalue?: { readonly outcome?: unknown } | null | undefined;
}

/** Which source a job is of, and what came of it: to the queue a run whose batch is held has simply been completed. */
function titleOf({ name, data, returnvalue }: ShownJob): string {
  const { sourceId } = data ?? {};
  const title = typeof sourceId === 'string' ? `${name} ${sourceId}` : name;
  const outcome = returnvalue?.outcome;
  if (outcome === 'held') return `${title} – held for a decision, not stored`;
  return typeof outcome === 'string' ? `${title} – ${outcome}` : title;
}
