/** Limits connections. Those with an accepted token have priority. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { addressKey } from './request.ts';

/** The share of all connections for one address (in IPv6, one /64). */
const SHARE_OF_ADDRESS = 1 / 2;
/** The share for connections without an accepted token. The rest is reserved for clients with one. */
const SHARE_OF_STRANGERS = 1 / 2;
/** Milliseconds between two log lines; each counts the rejected connections. */
const LOG_EVERY_MS = 10_000;

export interface ConnectionLimits {
  /** Concurrent connections. 0: no limit, and no rules for connections without an accepted token. */
  readonly max: number;
  readonly idleMs: number;
  readonly checkEveryMs: number;
  /** Whether an address is a trusted proxy: its connections carry the requests of many clients. */
  isProxy(address: string): boolean;
  readonly logger: Logger | false;
}

export interface Admission {
  /** Call it when a token is accepted: the connection may then be idle for `keepAliveTimeoutMs`. */
  admit(socket: Socket): void;
  /** Call it before an answer is written. A 401 ends a connection without an accepted token. */
  answers(response: ServerResponse, status: number): void;
}

/** A connection without an accepted token. */
interface Stranger {
  /** Requests without a complete response. */
  open: number;
  /** When the connection, or its last response, was complete, by `performance.now()`. */
  idleSince: number;
  /** Bytes received by then. More bytes mean that a request arrives, which has its own timeout. */
  bytes: number;
}

const NO_LIMITS: Admission = { admit: () => {}, answers: () => {} };

/** Call it after all other request listeners are added. */
export function limitConnections(server: Server, limits: ConnectionLimits): Admission {
  const { max, isProxy } = limits;
  if (max === 0) return NO_LIMITS;
  const ofAddress = Math.ceil(max * SHARE_OF_ADDRESS);
  const ofStrangers = Math.ceil(max * SHARE_OF_STRANGERS);
  const strangers = new Map<Socket, Stranger>();
  const addresses = new Map<string, number>();
  const log = refusalLog(limits);
  let count = 0;

  function add(socket: Socket, address: string | undefined): void {
    count += 1;
    if (address !== undefined) {
      addresses.set(address, (addresses.get(address) ?? 0) + 1);
      strangers.set(socket, { open: 0, idleSince: performance.now(), bytes: 0 });
    }
    socket.on('close', () => {
      count -= 1;
      strangers.delete(socket);
      if (address === undefined) return;
      const left = (addresses.get(address) ?? 0) - 1;
      if (left > 0) addresses.set(address, left);
      else addresses.delete(address);
    });
  }

  /** Closes the oldest idle connection without an accepted token. @returns false if none is idle */
  function replaceOne(): boolean {
    const [socket] = strangers.entries().find(([, { open }]) => open === 0) ?? [];
    if (!socket) return false;
    strangers.delete(socket);
    socket.destroy();
    return true;
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
    add(socket, address);
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

function countRequests(server: Server, strangers: ReadonlyMap<Socket, Stranger>): void {
  const began = ({ socket }: IncomingMessage, response: ServerResponse) => {
    const stranger = strangers.get(socket);
    if (!stranger) return;
    stranger.open += 1;
    response.on('close', () => {
      stranger.open -= 1;
      stranger.idleSince = performance.now();
      stranger.bytes = socket.bytesRead;
    });
  };
  server.prependListener('request', began);
  server.prependListener('checkExpectation', began);
}

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

/** Logs rejected connections, with the address that exceeds its share, or without one if all are used. */
function refusalLog({ logger, max }: ConnectionLimits): (address: string | undefined) => void {
  let refused = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (address) => {
    refused += 1;
    const now = performance.now();
    if (!logger || now - loggedAt < LOG_EVERY_MS) return;
    const why =
      address === undefined
        ? 'the number of MAX_CONNECTIONS is reached'
        : 'one address has half of MAX_CONNECTIONS; if it is a proxy, add it to TRUST_PROXY';
    logger.warn(
      { refused, max, ...(address !== undefined && { address }) },
      `connections are rejected: ${why}`,
    );
    refused = 0;
    loggedAt = now;
  };
}
