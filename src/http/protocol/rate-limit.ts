/** How much one token may ask. Counted in this process alone: no other server is on the path. */
import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from './problem.ts';

const WINDOW_MS = 60_000;
/** Tokens whose requests are counted; the one that has asked least recently is forgotten first. */
const TOKENS = 50_000;

/** Counts a request whose token is verified, and gives the problem to answer it with when it is one too many. */
export type RateLimit = (request: FastifyRequest, reply: FastifyReply) => Promise<Problem | undefined>;

/** @param requestsPerMinute that one token may make */
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
