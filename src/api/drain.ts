/** Closing without cutting anybody off: what is under way is answered, what is idle goes. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** How often connections that have become idle are looked for while the server closes. */
const REAP_EVERY_MS = 50;

export interface Draining {
  /**
   * While the server closes: has the client make another connection for its next request. To be told of each response
   * before it is written. Of requests that were waiting one behind the other then, only the first is sure of its
   * answer.
   */
  tellToClose(response: ServerResponse): void;
  /** Makes closing wait until the client has taken all of this response: Node takes its connection for idle before. */
  waitFor(response: ServerResponse): void;
}

/**
 * Makes `close()` end: Node lets connections go that are idle when it begins, this those that become idle later, and
 * all of them after `drainMs`. A request that still arrives on an open connection is answered, and Fastify tells it
 * `Connection: close`.
 */
export function drainOnClose(app: FastifyInstance, drainMs: number): Draining {
  const { server } = app;
  let begun = false;
  const askedSince = new WeakSet<Socket>();
  const unsent = new Set<ServerResponse>();
  let allSent = () => {};

  app.addHook('preClose', (done) => {
    begun = true;
    server.prependListener('request', ({ socket }: IncomingMessage) => askedSince.add(socket));
    const deadline = setTimeout(() => {
      for (const response of unsent) response.destroy();
      server.closeAllConnections();
    }, drainMs);
    allSent = () => {
      allSent = () => {};
      if (server.listening) {
        const reaper = setInterval(() => {
          if (unsent.size === 0) server.closeIdleConnections();
        }, REAP_EVERY_MS);
        server.once('close', () => {
          clearInterval(reaper);
          clearTimeout(deadline);
        });
      } else clearTimeout(deadline);
      done();
    };
    if (unsent.size === 0) allSent();
  });

  return {
    tellToClose(response) {
      if (begun && response.socket && !askedSince.has(response.socket)) response.shouldKeepAlive = false;
    },
    waitFor(response) {
      unsent.add(response);
      response.once('close', () => {
        unsent.delete(response);
        if (unsent.size === 0 && begun) allSent();
      });
    },
  };
}
