/** Closing without cutting anybody off: what is under way is answered, what is idle goes. */
import type { FastifyInstance } from 'fastify';

/** How often connections that have become idle are looked for while the server closes. */
const REAP_EVERY_MS = 50;

/**
 * Makes `close()` end: Node lets connections go that are idle when it begins, this those that become idle later, and
 * all of them after `drainMs`. A request that still arrives on an open connection is answered and told
 * `Connection: close`.
 */
export function drainOnClose(app: FastifyInstance, drainMs: number): void {
  app.addHook('preClose', (done) => {
    const { server } = app;
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
}
