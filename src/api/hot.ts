/**
 * The hot path: what memory holds is answered within the first hook of the request's own route, without a promise,
 * and without Fastify's way of sending. Whatever is not plainly such a request goes the ordinary way, which gives the
 * same bytes (test/api/hot.test.ts): a token that has to be looked up or refused, a parameter that does not do,
 * something that is not there, not in memory, or not known to be current.
 *
 * Everything that is decided is decided by the functions that the ordinary way uses; what is saved is what can be made
 * once for an answer instead of once for a request.
 */
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify';
import type { Grant } from '../domain/grant.ts';
import type { Scope } from '../domain/token.ts';
import { type EncodedBody, type HeldAnswer, TEXT_AT_MOST, type TokenReader } from '../snapshot/answer.ts';
import { bearerToken } from './auth.ts';
import { accepts, allowedCodings, type Coding, chooseCoding, entityTag, matchingTag } from './negotiate.ts';
import { answerHeaders, contentHeaders } from './send.ts';

/** Hears of an answer that is out, and how many milliseconds it took. */
export type Answered = (request: FastifyRequest, status: number, ms: number) => void;

export interface HotPath {
  readonly tokens: TokenReader;
  readonly scope: Scope;
  readonly answered: Answered;
  /** The answer to this request out of memory, if there is one; undefined says nothing. */
  held(request: FastifyRequest, grant: Grant): HeldAnswer | undefined;
}

/** A hook for the route's `onRequest`, before all others of the route. */
export function hotPath({ tokens, scope, answered, held }: HotPath) {
  /** The answer, and whose it is, when all of it is at hand. */
  function find(request: FastifyRequest): HeldAnswer | undefined {
    const { headers } = request.raw;
    const token = bearerToken(headers.authorization);
    const grant = token === undefined ? undefined : tokens.held?.(token);
    if (!grant?.scopes.includes(scope) || !accepts(headers)) return undefined;
    const answer = held(request, grant);
    if (answer) request.grant = grant;
    return answer;
  }

  return (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void => {
    const started = performance.now();
    const answer = find(request);
    if (!answer) {
      done();
      return;
    }
    request.tier = answer.tier;
    reply.hijack();
    const status = send(request, reply, answer);
    answered(request, status, performance.now() - started);
  };
}

/** @returns the status */
function send(
  { raw: request, id }: FastifyRequest,
  { raw: response }: FastifyReply,
  answer: HeldAnswer,
): number {
  const codings = request.headers['accept-encoding'] as string | undefined;
  const prepared = preparationOf(answer).in(chooseCoding(allowedCodings(codings), answer.body));
  const condition = request.headers['if-none-match'];
  const matching =
    condition === undefined ? undefined : matchingTag(condition, answer.body.hash, prepared.tag);
  if (matching === undefined) {
    response.writeHead(200, withId(prepared.headers, id));
    if (request.method === 'HEAD') response.end();
    else response.end(prepared.payload, 'latin1');
    return 200;
  }
  const known = matching === prepared.tag ? prepared.notModified : notModifiedHeaders(answer, matching);
  response.writeHead(304, withId(known, id));
  response.end();
  return 304;
}

/** Header fields as name, value, name, value, of which the first is the request's id. */
type HeaderList = string[];

/** The list itself: it is written out before anybody else can set another id. */
function withId(headers: HeaderList, id: string): HeaderList {
  headers[1] = id;
  return headers;
}

/** An answer in one coding, ready to be sent. */
interface Prepared {
  readonly tag: string;
  readonly headers: HeaderList;
  readonly notModified: HeaderList;
  /** The bytes, or a text of which each character is one byte. */
  readonly payload: Buffer | string;
}

class Preparation {
  readonly #answer: HeldAnswer;
  readonly #prepared: { [K in Coding]?: Prepared } = {};

  constructor(answer: HeldAnswer) {
    this.#answer = answer;
  }

  in(coding: Coding): Prepared {
    const known = this.#prepared[coding];
    if (known) return known;
    const made = prepare(this.#answer, coding);
    this.#prepared[coding] = made;
    return made;
  }
}

function preparationOf(answer: HeldAnswer): Preparation {
  const { prepared } = answer;
  if (prepared instanceof Preparation) return prepared;
  const made = new Preparation(answer);
  answer.prepared = made;
  return made;
}

function prepare(answer: HeldAnswer, coding: Coding): Prepared {
  const { body } = answer;
  const tag = entityTag(body.hash, coding);
  const bytes = bytesOf(body, coding);
  return {
    tag,
    headers: headerList({
      ...answerHeaders(answer),
      ...contentHeaders(tag, coding),
      'content-length': String(bytes.length),
    }),
    notModified: notModifiedHeaders(answer, tag),
    // A text goes out together with the header, in one write.
    payload: bytes.length <= TEXT_AT_MOST ? bytes.toString('latin1') : bytes,
  };
}

function notModifiedHeaders(answer: HeldAnswer, tag: string): HeaderList {
  return headerList({ ...answerHeaders(answer), etag: tag });
}

function headerList(headers: Readonly<Record<string, string>>): HeaderList {
  return ['x-request-id', '', ...Object.entries(headers).flat()];
}

function bytesOf(body: EncodedBody, coding: Coding): Buffer {
  return body[coding] ?? body.identity;
}
