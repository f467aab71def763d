/** Limits connections. Those with an accepted token have priority, and no address can keep out the others. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { addressKey } from '../../domain/servers/client-address.ts';
import { answerBefore, cutWhenIdle } from './drain.ts';

/** The share of all connections for one address (in IPv6, one /64). */
const SHARE_OF_ADDRESS = 1 / 2;
/** The share for strangers: connections without an accepted token. The rest is reserved for clients with one. */
const SHARE_OF_STRANGERS = 1 / 2;
/** One address's part of the strangers' share. Strangers beyond it yield their places to other addresses. */
const PART_OF_ADDRESS = 1 / 16;
/** Places in addition to all others, which only liveness probes may use. */
const RESERVE = 16;
/** Places of the reserve for one address. */
const RESERVE_OF_ADDRESS = 4;
/** Milliseconds of a connection in the reserve. */
const RESERVED_MS = 1000;
/** Milliseconds between two log lines; each counts the rejected connections. */
const LOG_EVERY_MS = 10_000;

export interface ConnectionLimits {
  /** Concurrent connections. 0: no limit, and no rules for connections without an accepted token. */
  readonly max: number;
  /** The setting of `max`, for the log. */
  readonly setting: string;
  /** How long a stranger may be idle, and its answer may make no progress. A longer answer may be replaced. */
  readonly idleMs: number;
  readonly checkEveryMs: number;
  /** Paths of liveness probes. They are answered while all connections are used. */
  readonly probes: readonly string[];
  /** Whether an address is a trusted proxy: its connections carry the requests of many clients. */
  isProxy(address: string): boolean;
  /** Answers any other request while all connections are used. The connection ends with the answer. */
  refuse(request: IncomingMessage, response: ServerResponse): void;
  readonly logger: Pick<Logger, 'warn'> | false | undefined;
}

export interface Admission {
  /** Call it when a token is accepted: the connection may then be idle for `keepAliveTimeoutMs`. */
  admit(socket: Socket): void;
  /** Call it before an answer is written. A 401 ends a connection without an accepted token. */
  answers(request: IncomingMessage, response: ServerResponse, status: number): void;
}

/** A connection without an accepted token. */
interface Stranger {
  readonly address: string;
  /** Requests without a complete response. */
  open: number;
  /** When its state last changed, by `performance.now()`: connected, a request began, all responses were complete. */
  since: number;
  /** Bytes received by then. More bytes mean that a request arrives, which has its own timeout. */
  bytes: number;
}

const NO_LIMITS: Admission = { admit: () => {}, answers: () => {} };

/** Call it after all other request listeners are added: it precedes them. */
export function limitConnections(server: Server, limits: ConnectionLimits): Admission {
  const { max, idleMs, isProxy } = limits;
  if (max === 0) return NO_LIMITS;
  const ofAddress = Math.ceil(max * SHARE_OF_ADDRESS);
  const ofStrangers = Math.ceil(max * SHARE_OF_STRANGERS);
  const strangers = new Strangers(Math.ceil(ofStrangers * PART_OF_ADDRESS), idleMs);
  const reserve = new Map<Socket, { address: string; since: number }>();
  const addresses = new Map<string, number>();
  const log = refusalLog(limits);
  let count = 0;

  function add(socket: Socket, address: string | undefined): void {
    count += 1;
    if (address !== undefined) {
      addresses.set(address, (addresses.get(address) ?? 0) + 1);
      strangers.add(socket, address);
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

  /** Accepts a connection for one probe. It replaces the oldest one, or the oldest of an address that has its part. */
  function addToReserve(socket: Socket, address: string): void {
    const own = [...reserve].filter(([, each]) => each.address === address);
    const [oldest] = own.length >= RESERVE_OF_ADDRESS ? own : reserve.size >= RESERVE ? reserve : [];
    oldest?.[0].destroy();
    if (oldest) reserve.delete(oldest[0]);
    reserve.set(socket, { address, since: performance.now() });
    socket.on('close', () => reserve.delete(socket));
  }

  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    const address = isProxy(remoteAddress) ? undefined : addressKey(remoteAddress);
    const hasShare = address !== undefined && (addresses.get(address) ?? 0) >= ofAddress;
    const isFull = hasShare || count >= max || (address !== undefined && strangers.size >= ofStrangers);
    const replaced = isFull ? strangers.replaceable(address, hasShare) : undefined;
    if (isFull && !replaced) {
      // Also with its share: the kubelet's probes may have the address of a gateway.
      addToReserve(socket, addressKey(remoteAddress));
      log(hasShare ? address : undefined);
      return;
    }
    if (replaced) {
      strangers.delete(replaced);
      replaced.destroy();
    }
    add(socket, address);
  });

  const began = ({ socket }: IncomingMessage, response: ServerResponse) => strangers.began(socket, response);
  server.prependListener('checkExpectation', began);
  answerBefore(server, (ordinary) => (request, response) => {
    if (reserve.size > 0 && reserve.has(request.socket)) {
      response.shouldKeepAlive = false;
      if (!limits.probes.includes(request.url ?? '')) {
        limits.refuse(request, response);
        return;
      }
    }
    began(request, response);
    ordinary(request, response);
  });

  const checking = setInterval(() => {
    const due = strangers.overdue();
    const limit = performance.now() - Math.min(RESERVED_MS, idleMs);
    const unused = [...reserve].filter(([, { since }]) => since < limit);
    // After the bytes that arrived while the event loop was late are read.
    setImmediate(() => {
      for (const [socket, stranger] of due) if (strangers.isStill(socket, stranger)) socket.destroy();
      for (const [socket] of unused) socket.destroy();
    });
  }, limits.checkEveryMs).unref();
  server.once('close', () => clearInterval(checking));

  return {
    admit: (socket) => strangers.delete(socket),
    answers(request, response, status) {
      if (!response.socket || !strangers.has(response.socket)) return;
      // The framework resets a timer once if bytes have left since: two timers fit into the time.
      cutWhenIdle(request, Math.ceil(idleMs / 2));
      if (status === 401) response.shouldKeepAlive = false;
      else response.setHeader('keep-alive', `timeout=${Math.floor(idleMs / 1000)}`);
    },
  };
}

/** The connections without an accepted token, the oldest first. */
class Strangers {
  readonly #all = new Map<Socket, Stranger>();
  readonly #ofAddresses = new Map<string, number>();
  readonly #ofAddress: number;
  readonly #idleMs: number;

  constructor(ofAddress: number, idleMs: number) {
    this.#ofAddress = ofAddress;
    this.#idleMs = idleMs;
  }

  get size(): number {
    return this.#all.size;
  }

  has(socket: Socket): boolean {
    return this.#all.has(socket);
  }

  add(socket: Socket, address: string): void {
    this.#all.set(socket, { address, open: 0, since: performance.now(), bytes: 0 });
    this.#ofAddresses.set(address, this.#count(address) + 1);
  }

  delete(socket: Socket): void {
    const stranger = this.#all.get(socket);
    if (!stranger) return;
    this.#all.delete(socket);
    const { address } = stranger;
    const left = this.#count(address) - 1;
    if (left > 0) this.#ofAddresses.set(address, left);
    else this.#ofAddresses.delete(address);
  }

  began(socket: Socket, response: ServerResponse): void {
    const stranger = this.#all.get(socket);
    if (!stranger) return;
    if (stranger.open === 0) stranger.since = performance.now();
    stranger.open += 1;
    response.on('close', () => {
      stranger.open -= 1;
      if (stranger.open > 0) return;
      stranger.since = performance.now();
      stranger.bytes = socket.bytesRead;
    });
  }

  /**
   * Returns the connection that a new one of this address replaces: one of an address with more than its part, else the oldest
   * idle one, else one whose answer takes too long. An address that has its part replaces none of the latter of others.
   * @param isOwn only one of this address
   */
  replaceable(address: string | undefined, isOwn: boolean): Socket | undefined {
    const limit = performance.now() - this.#idleMs;
    const hasPart = address !== undefined && this.#count(address) >= this.#ofAddress;
    let excess: Socket | undefined;
    let idle: Socket | undefined;
    let slow: Socket | undefined;
    for (const [socket, stranger] of this.#all) {
      const isOther = stranger.address !== address;
      if (isOwn && isOther) continue;
      const isIdle = stranger.open === 0;
      if (this.#count(stranger.address) > this.#ofAddress) {
        if (isIdle) return socket;
        excess ??= socket;
      } else if (hasPart && isOther) continue;
      if (isIdle) idle ??= socket;
      else if (stranger.since < limit) slow ??= socket;
    }
    return excess ?? idle ?? slow;
  }

  /** Returns those that are idle for too long, and those of an address beyond its part whose answers take too long. */
  overdue(): (readonly [Socket, Stranger])[] {
    const limit = performance.now() - this.#idleMs;
    const excess = new Map<string, number>();
    const due: (readonly [Socket, Stranger])[] = [];
    const isDue = (socket: Socket, { address, open, bytes }: Stranger) => {
      if (open === 0) return socket.bytesRead === bytes;
      const left = excess.get(address) ?? this.#count(address) - this.#ofAddress;
      excess.set(address, left - 1);
      return left > 0;
    };
    // There may be thousands, and few of them are due.
    for (const [socket, stranger] of this.#all)
      if (stranger.since < limit && isDue(socket, stranger)) due.push([socket, { ...stranger }]);
    return due;
  }

  /** Whether nothing happened on a connection since. */
  isStill(socket: Socket, { open, since, bytes }: Stranger): boolean {
    const now = this.#all.get(socket);
    return now?.since === since && now.open === open && (open > 0 || socket.bytesRead === bytes);
  }

  #count(address: string): number {
    return this.#ofAddresses.get(address) ?? 0;
  }
}

/** Logs rejected connections, with the address that exceeds its share, or without one if all are used. */
function refusalLog({ logger, max, setting }: ConnectionLimits): (address: string | undefined) => void {
  let refused = 0;
  let loggedAt = Number.NEGATIVE_INFINITY;
  return (address) => {
    refused += 1;
    const now = performance.now();
    if (!logger || now - loggedAt < LOG_EVERY_MS) return;
    const why =
      address === undefined
        ? `the number of ${setting} is reached`
        : `one address has half of ${setting}; if it is a proxy, add it to TRUST_PROXY`;
    logger.warn(
      { refused, max, ...(address !== undefined && { address }) },
      `connections are rejected: ${why}`,
    );
    refused = 0;
    loggedAt = now;
  };
}
