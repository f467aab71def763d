/** Shares the event loop among connections: no client's requests keep it from the others for long. */
import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { MaybePromise } from '../../snapshot/document/answer.ts';
import { Overloaded } from './pressure.ts';
import { Problem } from './problem.ts';
import type { Refuse } from './transport.ts';

/** Requests of one connection that wait for the answers before them. */
const QUEUED_AT_MOST = 64;
/** With this many, the connection is cut: each refusal takes memory until the answers before it are read. */
const WAITING_AT_MOST = 2 * QUEUED_AT_MOST;
/** Milliseconds of reads in one turn of the event loop, for which hot answers wait. A single read may take longer. */
const TURN_MS = 1;

const TOO_MANY = new Problem(429, {
  detail: `${QUEUED_AT_MOST} requests of this connection wait for their answers; read some before you send more.`,
  headers: { 'retry-after': '1' },
});

/** Counts the requests of each connection that wait for the answers before them. */
export class Pipelined {
  readonly #waiting = new WeakMap<Socket, number>();

  of(socket: Socket): number {
    return this.#waiting.get(socket) ?? 0;
  }

  /** Counts a request until its response gets the connection, which is after the responses before it. */
  add({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#waiting.set(socket, this.of(socket) + 1);
    response.once('socket', () => this.#waiting.set(socket, this.of(socket) - 1));
  }

  /** False if as many answers as allowed wait in memory for those before them. */
  hasRoom(socket: Socket): boolean {
    return this.of(socket) < QUEUED_AT_MOST;
  }
}

/**
 * Passes a pipelined request on when the answers before it are complete, in a later turn of the event loop. Work for a client
 * that left is not begun. The bytes of responses beyond the limit wait, and Node stops reading while many wait.
 */
export function inOrder(ordinary: RequestListener, refuse: Refuse, pipelined: Pipelined): RequestListener {
  return (request, response) => {
    // Node assigns the connection to a response after the responses before it.
    if (response.socket !== null) {
      ordinary(request, response);
      return;
    }
    const { socket } = request;
    // The parser passes on all requests of the bytes that it has read.
    if (socket.destroyed) return;
    if (pipelined.of(socket) >= WAITING_AT_MOST) {
      socket.destroy();
      return;
    }
    const hasRoom = pipelined.hasRoom(socket);
    pipelined.add(request, response);
    if (!hasRoom) {
      refuse(TOO_MANY, request, response);
      return;
    }
    response.once('socket', () =>
      setImmediate(() => {
        if (!socket.destroyed) ordinary(request, response);
      }),
    );
  };
}

/** The client has disconnected, so its request needs no answer. */
export class ClientLeft extends Error {}

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly since: number;
  begin(): void;
  reject(error: Error): void;
}

/** Runs reads of documents for some milliseconds in each turn of the event loop. The others wait in order. */
export class Turns {
  readonly #waiting: Waiting[] = [];
  readonly #waitAtMostMs: number;
  #usedMs = 0;
  #isScheduled = false;

  /** @param waitAtMostMs rejects a longer wait; 0 for no limit */
  constructor(waitAtMostMs: number) {
    this.#waitAtMostMs = waitAtMostMs;
  }

  /** Runs a read at once, or in a later turn. @throws ClientLeft, Overloaded */
  run<T>(request: IncomingMessage, response: ServerResponse, read: () => MaybePromise<T>): MaybePromise<T> {
    if (this.#usedMs < TURN_MS && this.#waiting.length === 0) return this.#measured(read);
    return new Promise<T>((resolve, reject) => {
      // Another request's turn begins it. Its log lines and spans still name this request. `AsyncLocalStorage.bind` costs 1 µs more.
      const context = new AsyncResource('Turn');
      const beginRead = () => {
        try {
          resolve(this.#measured(read));
        } catch (error) {
          reject(error);
        }
      };
      const begin = () => context.runInAsyncScope(beginRead);
      this.#waiting.push({ request, response, since: performance.now(), begin, reject });
    });
  }

  #measured<T>(read: () => T): T {
    const began = performance.now();
    try {
      return read();
    } finally {
      this.#usedMs += performance.now() - began;
      this.#schedule();
    }
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#next);
  }

  readonly #next = (): void => {
    this.#isScheduled = false;
    this.#usedMs = 0;
    while (this.#usedMs < TURN_MS) {
      const next = this.#waiting.shift();
      if (!next) return;
      const { request, response, since, begin, reject } = next;
      if (request.socket.destroyed || response.writableEnded) reject(new ClientLeft());
      else if (this.#waitAtMostMs > 0 && performance.now() - since > this.#waitAtMostMs)
        reject(new Overloaded('the event loop is busy'));
      else begin();
    }
  };
}
