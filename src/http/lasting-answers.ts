/** Lasting answers, which are streams and downloads: limits their number, and checks their tokens. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { Grant } from '../domain/scope.ts';
import type { MaybePromise, TokenReader } from '../snapshot/document/answer.ts';
import { bearerToken } from './auth.ts';
import { addressKey } from './protocol/request.ts';

/** Returns a signal that aborts when the response ends or its client disconnects. It may be aborted already. */
export function lifeOf({ socket }: IncomingMessage, response: ServerResponse): AbortSignal {
  const life = new AbortController();
  if (response.destroyed || response.closed || socket.destroyed) life.abort();
  else {
    const end = () => {
      socket.removeListener('close', end);
      response.removeListener('close', end);
      life.abort();
    };
    response.on('close', end);
    // A pipelined response emits no `close` when its connection ends.
    if (socket instanceof Socket) socket.on('close', end);
  }
  return life.signal;
}

const LIMITS = ['process', 'organization', 'token'] as const;

/** The limit that is reached. */
export type Full = (typeof LIMITS)[number];

/** Counts lasting answers. A place is free again when the signal of its answer aborts. */
export class Places {
  readonly #limits: Readonly<Record<Full, number>>;
  readonly #taken = new Map<string, number>();

  constructor(limits: Readonly<Record<Full, number>>) {
    this.#limits = limits;
  }

  /** Takes a place until `life` aborts. @returns the limit that is reached; undefined for success */
  enter({ organizationId, tokenId }: Grant, life: AbortSignal): Full | undefined {
    const keys = {
      process: 'process',
      organization: `organization ${organizationId}`,
      token: `token ${tokenId}`,
    };
    const full = LIMITS.find((limit) => (this.#taken.get(keys[limit]) ?? 0) >= this.#limits[limit]);
    if (full !== undefined || life.aborted) return full;
    this.#count(Object.values(keys), 1);
    life.addEventListener('abort', () => this.#count(Object.values(keys), -1), { once: true });
    return undefined;
  }

  #count(keys: readonly string[], by: 1 | -1): void {
    for (const key of keys) {
      const count = (this.#taken.get(key) ?? 0) + by;
      if (count > 0) this.#taken.set(key, count);
      else this.#taken.delete(key);
    }
  }
}

/** Concurrent checks. The others are skipped until the next check of their token. */
const CHECKS_AT_ONCE = 64;
/** Milliseconds between two checks by `checkAgain`. */
const PAUSE_MS = 500;

let running = 0;

/** Called with `true` for a revoked or expired token, and with `false` if no tier can verify it. */
type OnInvalid = (isKnown: boolean) => void;

/** Checks one token for all answers that use it. */
export class TokenCheck {
  readonly #verify: () => MaybePromise<Grant | undefined>;
  readonly #onUnwatched: () => void;
  readonly #watchers = new Set<OnInvalid>();
  #isRunning = false;
  #checkedAt = 0;

  /** @param onUnwatched called when the last watch ends */
  constructor(verify: () => MaybePromise<Grant | undefined>, onUnwatched: () => void) {
    this.#verify = verify;
    this.#onUnwatched = onUnwatched;
  }

  watch(onInvalid: OnInvalid): () => void {
    this.#watchers.add(onInvalid);
    return () => {
      this.#watchers.delete(onInvalid);
      if (this.#watchers.size === 0) this.#onUnwatched();
    };
  }

  /** Checks the token unless it was checked just now. @param now milliseconds since the epoch */
  checkAgain(now: number): void {
    if (Math.abs(now - this.#checkedAt) < PAUSE_MS) return;
    this.#checkedAt = now;
    void this.check();
  }

  /** Checks the token, without a promise if memory has it. It never fails. */
  check(): Promise<void> | undefined {
    if (this.#isRunning || running >= CHECKS_AT_ONCE) return undefined;
    const found = this.#verify();
    if (!(found instanceof Promise)) {
      if (!found) this.#notify(true);
      return undefined;
    }
    this.#isRunning = true;
    running += 1;
    return found
      .then(
        (grant) => {
          if (!grant) this.#notify(true);
        },
        () => this.#notify(false),
      )
      .finally(() => {
        this.#isRunning = false;
        running -= 1;
      });
  }

  #notify(isKnown: boolean): void {
    for (const onInvalid of this.#watchers) onInvalid(isKnown);
  }
}

export class TokenChecks {
  readonly #tokens: TokenReader;
  readonly #checks = new Map<string, TokenCheck>();

  constructor(tokens: TokenReader) {
    this.#tokens = tokens;
  }

  /** Returns the check of the request's token. The caller watches it at once, and the last watch to end removes it. */
  of(request: FastifyRequest): TokenCheck {
    const token = bearerToken(request.headers.authorization) ?? '';
    const { ip } = request;
    const known = this.#checks.get(token);
    if (known) return known;
    const check: TokenCheck = new TokenCheck(
      () => this.#tokens.verify(token, () => addressKey(ip)),
      () => {
        if (this.#checks.get(token) === check) this.#checks.delete(token);
      },
    );
    this.#checks.set(token, check);
    return check;
  }
}
