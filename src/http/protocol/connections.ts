import type { IncomingMessage, Server } from 'node:http';
import { Socket } from 'node:net';
import type { Logger } from 'pino';

/** Refusals are told of together, at most this often (ms). */
const TELL_EVERY_MS = 10_000;

/** Beyond `max` a connection is closed as soon as it is made; 0 stands for no limit. */
export function limitConnections(server: Server, max: number, logger: Logger | false): void {
  if (max === 0) return;
  server.maxConnections = max;
  let refused = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    refused += 1;
    const now = performance.now();
    if (!logger || now - toldAt < TELL_EVERY_MS) return;
    logger.warn({ refused, max }, 'connections are refused: there are as many as MAX_CONNECTIONS allows');
    refused = 0;
    toldAt = now;
  });
}

/**
 * Cuts the connection of this request when it stands still for so long (ms) while an answer is on its way: a client that
 * takes nothing is waited for, but not for ever. Node itself sets the time for the next request afterwards. The
 * request's connection, since an answer that waits behind another one has none yet.
 */
export function cutWhenIdle({ socket }: IncomingMessage, idleTimeoutMs: number): void {
  // Fastify's `inject` has something else.
  if (socket instanceof Socket) socket.setTimeout(idleTimeoutMs);
}
