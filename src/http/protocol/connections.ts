/** Cuts idle connections, and drains connections on close. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Cuts the request's connection after this time (ms) without progress. Node sets the timeout for the next request. The request
 * has the connection: a pipelined response has none yet.
 */
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
 * Lets `close()` end without cutting an answer. Node closes connections that are idle at the beginning. This closes
 * connections that become idle later, and all others after `drainMs`. It first waits until all written answers are sent,
 * because Node treats such connections as idle. Requests that still arrive are answered with `Connection: close`.
 */
export function drainOnClose(app: FastifyInstance, drainMs: number): Drain {
  const { server } = app;
  let begun = false;
  const requestedSince = new WeakSet<Socket>();
  const connections = new Set<Socket>();
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
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
