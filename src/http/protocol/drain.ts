import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** Cuts the connection after this time (ms) without progress. A pipelined response has no connection yet. */
export function cutWhenIdle({ socket }: IncomingMessage, idleTimeoutMs: number): void {
  // Fastify's `inject` has no real socket.
  if (socket instanceof Socket) socket.setTimeout(idleTimeoutMs);
}

/** Milliseconds between two checks of connections while the server closes. */
const CHECK_EVERY_MS = 50;

export interface Drain {
  isClosing(): boolean;
  /**
   * Call it with each response before it is written. While the server closes, it adds `Connection: close`. Of pipelined
   * requests, only the first is then sure to get an answer.
   */
  closeLater(response: ServerResponse): void;
}

/**
 * Lets `close()` end without cutting an answer. Node closes connections that are idle at the beginning, also with written
 * answers that are not sent. So this waits for them, closes connections that become idle later, and all after `drainMs`.
 */
export function drainOnClose(app: FastifyInstance, drainMs: number): Drain {
  const { server } = app;
  let begun = false;
  const requestedSince = new WeakSet<Socket>();
  const connections = new Set<Socket>();
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
  });
  const isAnyUnsent = () => [...connections].some((socket) => socket.writableLength > 0);

  app.addHook('preClose', (done) => {
    begun = true;
    server.prependListener('request', ({ socket }: IncomingMessage) => requestedSince.add(socket));
    if (!server.listening) {
      done();
      return;
    }
    let closing = false;
    const check = () => {
      if (isAnyUnsent()) return;
      server.closeIdleConnections();
      if (closing) return;
      closing = true;
      done();
    };
    const checking = setInterval(check, CHECK_EVERY_MS);
    const deadline = setTimeout(() => {
      for (const socket of connections) socket.destroy();
    }, drainMs);
    server.once('close', () => {
      clearInterval(checking);
      clearTimeout(deadline);
    });
    check();
  });

  return {
    isClosing: () => begun,
    closeLater(response) {
      if (begun && response.socket && !requestedSince.has(response.socket)) response.shouldKeepAlive = false;
    },
  };
}

/** Replaces the listener of requests by one that precedes it. Call it before any other listener is added. */
export function answerBefore(server: Server, listener: (ordinary: RequestListener) => RequestListener): void {
  const [ordinary] = server.listeners('request') as RequestListener[];
  if (!ordinary) throw new Error('unreachable: the framework listens to its own server');
  server.removeListener('request', ordinary);
  server.on('request', listener(ordinary));
}
