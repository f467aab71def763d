/** Limits the requests of a token. Each process counts alone, so that no request waits for another server. */
import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from './problem.ts';

const WINDOW_MS = 60_000;
const TOKENS = 50_000;

/** Counts a request with a verified token. Returns the problem if it exceeds the limit. */
export type RateLimit = (request: FastifyRequest, reply: FastifyReply) => Promise<Problem | undefined>;

export function addRateLimit(app: FastifyInstance, requestsPerMinute: number): RateLimit {
  let count: ReturnType<FastifyInstance['createRateLimit']> | undefined;
  app.register(rateLimit, {
    global: false,
    max: requestsPerMinute,
    timeWindow: WINDOW_MS,
    cache: TOKENS,
    keyGenerator: ({ grant }) => String(grant?.tokenId),
  });
  app.after((error) => {
    if (!error) count = app.createRateLimit();
  });
  return async (request, reply) => {
    const state = await count?.(request);
    if (!state || state.isAllowed) return undefined;
    reply.headers({
      'ratelimit-limit': String(state.max),
      'ratelimit-remaining': String(state.remaining),
      'ratelimit-reset': String(state.ttlInSeconds),
    });
    return state.isExceeded ? tooMany(requestsPerMinute, state.ttlInSeconds) : undefined;
  };
}

export function tooMany(requestsPerMinute: number, retryAfterSeconds: number): Problem {
  return new Problem(429, {
    detail: `The token may make ${requestsPerMinute} requests a minute; try again after the pause in Retry-After.`,
    headers: { 'retry-after': String(Math.max(1, retryAfterSeconds)) },
  });
}
