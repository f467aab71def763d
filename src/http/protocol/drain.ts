/** Closing without cutting anybody off: what is under way is answered, what is idle goes. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** How often connections are looked at while the server closes. */
const LOOK_EVERY_MS = 50;

/**
 * While the server closes: has the client make another connection for its next request. To be told of each response
 * before it is written. Of requests that were waiting one behind the other then, only the first is sure of its answer.
 */
export type TellToClose = (response: ServerResponse) => void;

/**
 * Makes `close()` end: Node lets connections go that are idle when it begins, this those that become idle later, and
 * all of them after `drainMs`. Node takes a connection for idle whose client has not taken all of its answer yet: so
 * closing begins once there is none of that. A request that still arrives on an open connection is answered, and
 * Fastify tells it `Connection: close`.
 */
export function drainOnClose(app: FastifyInstance, drainMs: number): TellToClose {
  const { server } = app;
  let begun = false;
  const askedSince = new WeakSet<Socket>();
  const connections = new Set<Socket>();
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  const isAnyUnsent = () => [...connections].some((socket) => socket.writableLength > 0);

  app.addHook('preClose', (done) => {
    begun = true;
    server.prependListener('request', ({ socket }: IncomingMessage) => askedSince.add(socket));
    if (!server.listening) {
      done();
      return;
    }
    let closing = false;
    const look = () => {
      if (isAnyUnsent()) return;
      server.closeIdleConnections();
      if (closing) return;
      closing = true;
      done();
    };
    const looking = setInterval(look, LOOK_EVERY_MS);
    const deadline = setTimeout(() => {
      for (const socket of connections) socket.destroy();
    }, drainMs);
    server.once('close', () => {
      clearInterval(looking);
      clearTimeout(deadline);
    });
    look();
  });

  return (response) => {
    if (begun && response.socket && !askedSince.has(response.socket)) response.shouldKeepAlive = false;
  };
}
