/** Closing without cutting anybody off: what is under way is answered, what is idle goes. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** How often connections that have become idle are looked for while the server closes. */
const REAP_EVERY_MS = 50;

/** Has clients make another connection for their next request: told to each response before it is written. */
export type TellToClose = (response: ServerResponse) => void;

/**
 * Makes `close()` end: Node lets connections go that are idle when it begins, this those that become idle later, and
 * all of them after `drainMs`. A request that still arrives on an open connection is answered, and Fastify tells it
 * `Connection: close`; whoever was waiting before, and has not asked again, is told by what is returned here.
 */
export function drainOnClose(app: FastifyInstance, drainMs: number): TellToClose {
  const { server } = app;
  let begun = false;
  const askedSince = new WeakSet<Socket>();
  app.addHook('preClose', (done) => {
    begun = true;
    server.prependListener('request', ({ socket }: IncomingMessage) => askedSince.add(socket));
    if (server.listening) {
      const reaper = setInterval(() => server.closeIdleConnections(), REAP_EVERY_MS);
      const deadline = setTimeout(() => server.closeAllConnections(), drainMs);
      server.once('close', () => {
        clearInterval(reaper);
        clearTimeout(deadline);
      });
    }
    done();
  });
  return (response) => {
    if (begun && response.socket && !askedSince.has(response.socket)) response.shouldKeepAlive = false;
  };
}
