/** Which connections stay while there are many of them: those on which a token was accepted come first. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { addressKey } from './request.ts';

/** Of all connections, the share that one address may hold (of IPv6: one /64). */
const SHARE_OF_ADDRESS = 1 / 2;
/** The share for connections without an accepted token. The other half is a reserve for clients that have one. */
const SHARE_OF_STRANGERS = 1 / 2;
/** Refusals are logged together, at most this often (ms). */
const LOG_EVERY_MS = 10_000;

export interface ConnectionLimits {
  /** Connections at once. 0: no limit, also on what a connection without an accepted token may do. */
  readonly max: number;
  /** Milliseconds for which a connection without an accepted token may be idle, and between two checks of that. */
  readonly idleMs: number;
  readonly checkEveryMs: number;
  /** Whether an address is a trusted proxy: its connections carry the requests of many clients. */
  isProxy(address: string): boolean;
  readonly logger: Logger | false;
}

export interface Admission {
  /** A token was accepted on this connection. From now on it may be idle as long as `keepAliveTimeoutMs`. */
  admit(socket: Socket): void;
  /** Call it before an answer is written. Without an accepted token a 401 ends the connection. */
  answers(response: ServerResponse, status: number): void;
}

/** A connection on which no token was accepted yet. */
interface Stranger {
  /** Requests without a complete response. */
  open: number;
  /** By `performance.now()`: when the connection, or its last response, was complete. */
  idleSince: number;
  /** Bytes that had arrived by then: if there are more, a request is arriving, which has its own time limit. */
  bytes: number;
}

const NO_LIMITS: Admission = { admit: () => {}, answers: () => {} };

/** Call it once all other listeners for requests are there. */
export function limitConnections(server: Server, limits: ConnectionLimits): Admission {
  const { max, isProxy } = limits;
  if (max === 0) return NO_LIMITS;
  const ofAddress = Math.ceil(max * SHARE_OF_ADDRESS);
  const ofStrangers = Math.ceil(max * SHARE_OF_STRANGERS);
  /** In the order of their coming. */
  const strangers = new Map<Socket, Stranger>();
  const addresses = new Map<string, number>();
  const log = refusalLog(limits);
  let count = 0;

  function keep(socket: Socket, address: string | undefined): void {
    count += 1;
    if (address !== undefined) {
      addresses.set(address, (addresses.get(address) ?? 0) + 1);
      strangers.set(socket, { open: 0, idleSince: performance.now(), bytes: 0 });
    }
    socket.once('close', () => {
      count -= 1;
      strangers.delete(socket);
      if (address === undefined) return;
      const left = (addresses.get(address) ?? 0) - 1;
      if (left > 0) addresses.set(address, left);
      else addresses.delete(address);
    });
  }

  /** Closes the connection without an accepted token that came first. @returns false where none is idle */
  function replaceOne(): boolean {
    for (const [socket, { open }] of strangers)
      if (open === 0) {
        strangers.delete(socket);
        socket.destroy();
        return true;
      }
    return false;
  }

  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    const address = isProxy(remoteAddress) ? undefined : addressKey(remoteAddress);
    if (address !== undefined && (addresses.get(address) ?? 0) >= ofAddress) {
      socket.destroy();
      log(address);
      return;
    }
    const isFull = count >= max || (address !== undefined && strangers.size >= ofStrangers);
    if (isFull && !replaceOne()) {
      socket.destroy();
      log(undefined);
      return;
    }
    keep(socket, address);
  });

  countRequests(server, strangers);
  closeIdle(server, strangers, limits);

  return {
    admit: (socket) => void strangers.delete(socket),
    answers(response, status) {
      if (!response.socket || !strangers.has(response.socket)) return;
      if (status === 401) response.shouldKeepAlive = false;
      else response.setHeader('keep-alive', `timeout=${Math.floor(limits.idleMs / 1000)}`);
    },
  };
}

/** Counts the requests of connections without an accepted token. */
function countRequests(server: Server, strangers: ReadonlyMap<Socket, Stranger>): void {
  const began = ({ socket }: IncomingMessage, response: ServerResponse) => {
    const stranger = strangers.get(socket);
    if (!stranger) return;
    stranger.open += 1;
    response.once('close', () => {
      stranger.open -= 1;
      stranger.idleSince = performance.now();
      stranger.bytes = socket.bytesRead;
    });
  };
  server.prependListener('request', began);
  server.prependListener('checkExpectation', began);
}

/** Closes connections without an accepted token that are idle for too long. */
function closeIdle(
  server: Server,
  strangers: ReadonlyMap<Socket, Stranger>,
  { idleMs, checkEveryMs }: ConnectionLimits,
): void {
  const checking = setInterval(() => {
    const limit = performance.now() - idleMs;
    for (const [socket, { open, idleSince, bytes }] of strangers)
      if (open === 0 && idleSince < limit && socket.bytesRead === bytes) socket.destroy();
  }, checkEveryMs).unref();
  server.once('close', () => clearInterval(checking));
}

/** Logs a refused connection, with the address that holds its share, or without one where all are taken. */
function refusalLog({ logger, max }: ConnectionLimits): (address: string | undefined) => void {
  let refused = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (address) => {
    refused += 1;
    const now = performance.now();
    if (!logger || now - loggedAt < LOG_EVERY_MS) return;
    const why =
      address === undefined
        ? 'there are as many as MAX_CONNECTIONS allows'
        : 'one address holds half of MAX_CONNECTIONS; if it is a proxy, name it in TRUST_PROXY';
    logger.warn(
      { refused, max, ...(address !== undefined && { address }) },
      `connections are refused: ${why}`,
    );
    refused = 0;
    loggedAt = now;
  };
}
