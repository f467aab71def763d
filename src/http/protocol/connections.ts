/** When connections are cut or closed. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Cuts the request's connection when its client takes no byte of an answer for so long (ms). Node itself sets the time
 * for the next request afterwards. The connection is the request's: an answer that waits behind another has none yet.
 */
export function cutWhenIdle({ socket }: IncomingMessage, idleTimeoutMs: number): void {
  // Fastify's `inject` has something else.
  if (socket instanceof Socket) socket.setTimeout(idleTimeoutMs);
}

/** How often connections are looked at while the server closes. */
const LOOK_EVERY_MS = 50;

export interface Drain {
  isClosing(): boolean;
  /**
   * Call it with each response before it is written. While the server closes, the client is told to close its
   * connection. Of requests that wait behind each other then, only the first is sure of its answer.
   */
  tellToClose(response: ServerResponse): void;
}

/**
 * Lets `close()` end without cutting an answer. Node closes connections that are idle when closing begins. This closes
 * those that become idle later, and all others after `drainMs`. Closing begins when no answer waits for its client: Node
 * takes such a connection for idle. A request that still arrives on an open connection is answered, and Fastify adds
 * `Connection: close`.
 */
export function drainOnClose(app: FastifyInstance, drainMs: number): Drain {
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

  return {
    isClosing: () => begun,
    tellToClose(response) {
      if (begun && response.socket && !askedSince.has(response.socket)) response.shouldKeepAlive = false;
    },
  };
}
