/**
 * The hot path: what memory holds is answered within the first hook of the request's own route, without a promise.
 * Whatever is not plainly such a request goes the ordinary way, which gives the same bytes (test/http/hot-path.test.ts): a
 * token that has to be looked up or refused, a parameter that does not do, something that is not there, not in memory,
 * not known to be current, or not yet in the coding that the client wants.
 *
 * Everything that is decided is decided by the functions that the ordinary way uses.
 */
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify';
import type { Grant } from '../domain/grant.ts';
import type { Scope } from '../domain/token.ts';
import {
  EVERYBODY,
  type HeldAnswer,
  type Remembering,
  type TokenReader,
} from '../snapshot/document/answer.ts';
import { bearerToken } from './auth.ts';
import { accepts } from './protocol/negotiate.ts';
import { canBeSent, type SendAnswer } from './send.ts';

/** Hears of an answer that is out, and how many milliseconds it took. */
export type Answered = (request: FastifyRequest, status: number, ms: number) => void;

export interface HotPath {
  readonly tokens: TokenReader;
  readonly scope: Scope;
  /** Whether the answers are the same for every organization. */
  readonly shared: boolean;
  readonly remembering: Remembering;
  readonly answered: Answered;
  readonly sendAnswer: SendAnswer;
  /** The answer to this request out of memory, if there is one; undefined says nothing. */
  held(request: FastifyRequest, grant: Grant): HeldAnswer | undefined;
}

/** A hook for the route's `onRequest`, before all others of the route. */
export function hotPath(path: HotPath) {
  const { tokens, scope, shared, answered, sendAnswer, held } = path;
  const remembered = path.remembering.remembered();

  /** The answer, when all that it takes is at hand. */
  function find(request: FastifyRequest): HeldAnswer | undefined {
    const { headers, url = '' } = request.raw;
    const token = bearerToken(headers.authorization);
    const grant = token === undefined ? undefined : tokens.held?.(token);
    if (!grant?.scopes.includes(scope) || !accepts(headers)) return undefined;
    request.grant = grant;
    const owner = shared ? EVERYBODY : grant.organizationId;
    let answer = remembered.get(owner, url);
    if (!answer) {
      answer = held(request, grant);
      if (answer) remembered.set(owner, url, answer);
    }
    return answer && canBeSent(request.raw, answer) ? answer : undefined;
  }

  return (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void => {
    const started = performance.now();
    const answer = find(request);
    if (!answer) {
      done();
      return;
    }
    const status = sendAnswer(request, reply, answer);
    answered(request, status, performance.now() - started);
  };
}
