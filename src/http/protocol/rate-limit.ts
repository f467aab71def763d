/** Limits the requests of a token. Each process counts alone, so that no request waits for another server. */
import { performance } from 'node:perf_hooks';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from './problem.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Names and values of the RateLimit fields in turn; undefined without a limit, or before the request is counted. */
    rateFields: readonly string[] | undefined;
  }
}

const WINDOW_MS = 60_000;
const TOKENS = 50_000;
/** With this many requests left, an answer has no RateLimit fields: a client that is far from its limit needs none. */
const PLENTY = 10_000;

interface Window {
  count: number;
  readonly endsAt: number;
}

interface Counted {
  readonly isExceeded: boolean;
  readonly fields: readonly string[];
  /** Until the window ends, for an answer with fields. */
  readonly secondsLeft: number;
}

const FAR_FROM_LIMIT: Counted = { isExceeded: false, fields: [], secondsLeft: 0 };

export class RateLimit {
  readonly #perMinute: number;
  readonly #now: () => number;
  /** By token. The window that began first is the first. */
  readonly #windows = new Map<number, Window>();

  /** @param now milliseconds of a monotonic clock */
  constructor(perMinute: number, now = () => performance.now()) {
    this.#perMinute = perMinute;
    this.#now = now;
  }

  /** Counts a request with a verified token. @param at when it began: milliseconds of the same clock */
  count(tokenId: number, at = this.#now()): Counted {
    // The sum of a fraction and a window may be more than the window later.
    const now = Math.floor(at);
    let window = this.#windows.get(tokenId);
    if (!window || window.endsAt <= now) window = this.#begin(tokenId, now);
    window.count += 1;
    const remaining = Math.max(0, this.#perMinute - window.count);
    if (remaining >= PLENTY) return FAR_FROM_LIMIT;
    const secondsLeft = Math.ceil((window.endsAt - now) / 1000);
    const fields = ['ratelimit-limit', String(this.#perMinute), 'ratelimit-remaining', String(remaining)];
    fields.push('ratelimit-reset', String(secondsLeft));
    return { isExceeded: window.count > this.#perMinute, fields, secondsLeft };
  }

  /** Counts the request and adds the fields to its answer. Returns the problem if it exceeds the limit. */
  refuse(request: FastifyRequest, reply: FastifyReply, tokenId: number): Problem | undefined {
    const { isExceeded, fields, secondsLeft } = this.count(tokenId);
    request.rateFields = fields;
    for (let i = 0; i < fields.length; i += 2) reply.header(fields[i] ?? '', fields[i + 1]);
    return isExceeded ? tooMany(this.#perMinute, secondsLeft) : undefined;
  }

  #begin(tokenId: number, now: number): Window {
    const window = { count: 0, endsAt: now + WINDOW_MS };
    this.#windows.delete(tokenId);
    this.#windows.set(tokenId, window);
    if (this.#windows.size > TOKENS) {
      const [oldest] = this.#windows.keys();
      if (oldest !== undefined) this.#windows.delete(oldest);
    }
    return window;
  }
}

export function tooMany(requestsPerMinute: number, retryAfterSeconds: number): Problem {
  return new Problem(429, {
    detail: `The token may make ${requestsPerMinute} requests a minute; try again after the pause in Retry-After.`,
    headers: { 'retry-after': String(Math.max(1, retryAfterSeconds)) },
  });
}
