/** The queues' page, as Bull Board draws it. */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { FastifyAdapter } from '@bull-board/fastify';
import type { Queue } from 'bullmq';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isChanging } from './roles.ts';

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
  const adapters = new WeakMap<Queue, BullMQAdapter>();
  const adapterOf = (queue: Queue): BullMQAdapter => {
    const known = adapters.get(queue);
    if (known) return known;
    const adapter = new BullMQAdapter(queue);
    adapter.setFormatter('name', titleOf);
    adapters.set(queue, adapter);
    return adapter;
  };
  const serverAdapter = new FastifyAdapter().setBasePath(path);
  const board = createBullBoard({
    queues: current().map(adapterOf),
    serverAdapter,
    options: { uiConfig: { boardTitle: 'Fleetbook queues' } },
  });
  await app.register(
    (scope, _, done) => {
      scope.addHook('onSend', async (_request, reply, payload) =>
        typeof payload === 'string' && String(reply.getHeader('content-type')).startsWith('text/html')
          ? withoutForeignLinks(payload)
          : payload,
      );
      if (beforeChange) {
        scope.addHook('preHandler', async (request) => {
          if (isChanging(request.method)) await beforeChange(request);
        });
      }
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

/** Without the links to other sites that the page is delivered with: they are for its fonts, and the system has some. */
function withoutForeignLinks(html: string): string {
  return html.replaceAll(/^[^\S\n]*<link\b[^>]*\bhref="(?:https?:)?\/\/[^>]*>\n?/gm, '');
}

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
