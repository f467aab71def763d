/** The queues' page: Bull Board without foreign links, with roles. */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { Queue } from 'bullmq';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { includesRole } from '../domain/operator.ts';
import { isChanging } from './access.ts';

/** @param beforeChange called before a change of a queue or a job; if it fails, nothing changes */
export async function addBoard(
  app: FastifyInstance,
  path: string,
  queues: readonly Queue[],
  beforeChange?: (request: FastifyRequest) => Promise<void>,
): Promise<void> {
  const serverAdapter = new AdapterByRole(
    new Map(queues.map((queue) => [queue.name, adapterOf(queue, true)])),
  );
  serverAdapter.setBasePath(path);
  createBullBoard({
    queues: queues.map((queue) => adapterOf(queue, false)),
    serverAdapter,
    options: { uiConfig: { boardTitle: 'Fleetbook queues' } },
  });
  await app.register(
    (scope, _, done) => {
      scope.addHook('onSend', async (_request, reply, payload) =>
        typeof payload === 'string' && String(reply.getHeader('content-type')).startsWith('text/html')
          ? withConsoleLink(withoutForeignLinks(payload))
          : payload,
      );
      scope.addHook('onRequest', async (request) => {
        const { signedIn } = request;
        if (signedIn && !includesRole(signedIn.role, 'operator')) serverAdapter.addViewer(request.headers);
      });
      scope.addHook('preHandler', async (request, reply) => {
        if (!isChanging(request.method)) return undefined;
        if (!OFFERED.test(request.routeOptions.url ?? '')) return reply.code(403).send(NOT_OFFERED);
        await beforeChange?.(request);
        return undefined;
      });
      scope.register(serverAdapter.registerPlugin());
      done();
    },
    { prefix: path },
  );
}

/**
 * The changes that the board offers. All others are refused, also those of later releases of Bull Board: only Fleetbook creates
 * jobs and sets up queues.
 */
const OFFERED =
  /\/api\/queues\/(?:pause|resume|:queueName\/(?:pause|resume|empty|promote|(?:retry|clean)\/:queueStatus|:jobId\/(?:retry|clean|promote)))$/;
const NOT_OFFERED = {
  error: 'Not offered',
  message:
    'The board pauses queues, and retries, promotes and removes jobs. To run a source, use the console.',
};

function adapterOf(queue: Queue, readOnlyMode: boolean): BullMQAdapter {
  const adapter = new BullMQAdapter(queue, { readOnlyMode });
  adapter.setFormatter('name', titleOf);
  return adapter;
}

type ApiRoutes = Parameters<FastifyAdapter['setApiRoutes']>[0];
type ErrorHandler = Parameters<FastifyAdapter['setErrorHandler']>[0];
type BoardQueues = Parameters<FastifyAdapter['setQueues']>[0];

/** Adds roles to Bull Board: it shows viewers the same queues as read-only ones, without buttons. */
class AdapterByRole extends FastifyAdapter {
  /** A handler of the board gets the request's headers, but not the request. */
  readonly #viewers = new WeakSet<object>();
  readonly #readOnly: BoardQueues;

  constructor(readOnly: BoardQueues) {
    super();
    this.#readOnly = readOnly;
  }

  addViewer(headers: object): void {
    this.#viewers.add(headers);
  }

  override setErrorHandler(handler: ErrorHandler): this {
    return super.setErrorHandler((error) =>
      isRedisAway(error)
        ? { status: 500, body: { error: 'Not available now', message: 'The queues’ Redis does not answer.' } }
        : handler(error),
    );
  }

  override setApiRoutes(routes: ApiRoutes): this {
    super.setApiRoutes(
      routes.map((route) => ({
        ...route,
        handler: (request) =>
          route.handler(
            request && this.#viewers.has(request.headers) ? { ...request, queues: this.#readOnly } : request,
          ),
      })),
    );
    return this;
  }
}

/** Matches the messages of ioredis. */
const isRedisAway = ({ message }: Error): boolean =>
  /^(?:Stream isn't writeable|Connection is closed|Command timed out|connect |Socket)/.test(message);

/** Removes links to other sites. They are for fonts, and the system's fonts do. */
function withoutForeignLinks(html: string): string {
  return html.replaceAll(/^[ \t]*<link\b[^<>]*\bhref="(?:https?:)?\/\/[^<>]*>\n?/gm, '');
}

const CONSOLE_LINK =
  '<a href="/" style="position:fixed;left:.75rem;bottom:.75rem;z-index:1000;padding:.3rem .7rem;border-radius:.25rem;background:#1d3a5f;color:#fff;font:14px system-ui,sans-serif">Fleetbook console</a>';
const withConsoleLink = (html: string): string => html.replace('</body>', `${CONSOLE_LINK}</body>`);

interface ShownJob {
  readonly name: string;
  readonly data?: { readonly sourceId?: unknown } | undefined;
  readonly returnvalue?: { readonly outcome?: unknown } | null | undefined;
}

function titleOf({ name, data, returnvalue }: ShownJob): string {
  const { sourceId } = data ?? {};
  const title = typeof sourceId === 'string' ? `${name} ${sourceId}` : name;
  const outcome = returnvalue?.outcome;
  if (outcome === 'held') return `${title} – held for a decision, not stored`;
  return typeof outcome === 'string' ? `${title} – ${outcome}` : title;
}
