import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { Grant, Scope } from '../domain/scope.ts';
import { type MaybePromise, type TokenReader, whenThere } from '../snapshot/document/answer.ts';
import type { WithDeadline } from './protocol/deadline.ts';
import { Problem, sendProblem } from './protocol/problem.ts';
import type { RateLimit } from './protocol/rate-limit.ts';
import { addressKey } from './protocol/request.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The permissions of the request's token; undefined until it is verified, and on routes without one. */
    grant: Grant | undefined;
  }
}

const CHALLENGE = 'Bearer realm="fleetbook"';

export const UNAUTHENTICATED = new Problem(401, {
  detail: 'Give a token in the Authorization header: Bearer fb_…',
  headers: { 'www-authenticate': CHALLENGE },
});

/** Answers malformed, unknown, expired and revoked tokens alike: the caller must not learn which it is. */
export const INVALID_TOKEN = new Problem(401, {
  detail: 'The token is not valid.',
  headers: { 'www-authenticate': `${CHALLENGE}, error="invalid_token"` },
});

export function insufficientScope(scope: Scope): Problem {
  return new Problem(403, {
    type: 'urn:fleetbook:problem:insufficient-scope',
    title: 'Insufficient scope',
    detail: `The token lacks the scope ${scope}.`,
    headers: { 'www-authenticate': `${CHALLENGE}, error="insufficient_scope", scope="${scope}"` },
    members: { scope },
  });
}

/** Returns the text after `Bearer`, well formed or not; undefined without such credentials. */
export function bearerToken(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  if (header.startsWith('Bearer fb_')) return header.slice(7);
  const match = /^bearer(?: +|$)/i.exec(header);
  return match ? header.slice(match[0].length) : undefined;
}

/** Returns the problem with a request's token; undefined if it is valid. Synchronous if memory has the token. */
export type Guard = (request: FastifyRequest, reply: FastifyReply) => MaybePromise<Problem | undefined>;

export interface GuardDeps {
  readonly tokens: TokenReader;
  readonly withDeadline: WithDeadline;
  readonly rateLimit?: RateLimit | undefined;
  readonly admit: (socket: Socket) => void;
}

export function guard(
  { tokens, withDeadline, rateLimit, admit }: GuardDeps,
  scope: Scope | undefined,
): Guard {
  const lacking = scope && insufficientScope(scope);
  return (request, reply) => {
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) return UNAUTHENTICATED;
    const found = tokens.verify(token, () => addressKey(request.ip));
    return whenThere(found instanceof Promise ? withDeadline(found) : found, (grant) => {
      if (grant === undefined) return INVALID_TOKEN;
      request.grant = grant;
      admit(request.raw.socket);
      const problem = scope && !grant.scopes.includes(scope) ? lacking : undefined;
      return rateLimit?.refuse(request, reply, grant.tokenId) ?? problem;
    });
  };
}

export function guardHook(check: Guard): onRequestHookHandler {
  return (request, reply, done) => {
    const answer = (problem: Problem | undefined) => {
      if (problem) sendProblem(reply, problem);
      else done();
    };
    const found = check(request, reply);
    if (found instanceof Promise)
      found.then(answer, (error: unknown) => done(error instanceof Error ? error : new Error(String(error))));
    else answer(found);
  };
}
