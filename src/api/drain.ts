/** Closing without cutting anybody off: what is under way is answered, what is idle goes. */
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** How often connections that have become idle are looked for while the server closes. */
const REAP_EVERY_MS = 50;

/**
 * Makes `close()` end: connections on which nothing was ever sent go at once, others as soon as they are idle, all of
 * them after `drainMs`. A request that still arrives on an open connection is answered and told `Connection: close`.
 */
export function drainOnClose(app: FastifyInstance, drainMs: number): void {
  const sockets = new Set<Socket>();
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  app.addHook('preClose', (done) => {
    const { server } = app;
    // Opened in advance by browsers and proxies; to Node they look like requests that have begun.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    const reaper = setInterval(() => server.closeIdleConnections(), REAP_EVERY_MS);
    const deadline = setTimeout(() => server.closeAllConnections(), drainMs);
    server.once('close', () => {
      clearInterval(reaper);
      clearTimeout(deadline);
    });
    done();
  });
}
