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
import {
  type EncodedBody,
  EVERYBODY,
  type HeldAnswer,
  type Remembering,
  TEXT_AT_MOST,
  type TokenReader,
} from '../snapshot/answer.ts';
import { bearerToken } from './auth.ts';
import { cutWhenIdle } from './connections.ts';
import { accepts, allowedCodings, type Coding, chooseCoding, entityTag, matchingTag } from './negotiate.ts';
import { answerHeaders, contentHeaders } from './send.ts';

/** Hears of an answer that is out, and how many milliseconds it took. */
export type Answered = (request: FastifyRequest, status: number, ms: number) => void;

export interface HotPath {
  readonly tokens: TokenReader;
  readonly scope: Scope;
  /** Whether the answers are the same for every organization. */
  readonly shared: boolean;
  readonly remembering: Remembering;
  readonly answered: Answered;
  /** Milliseconds that the client may take no byte of an answer before the connection is cut. */
  readonly idleTimeoutMs: number;
  /** The answer to this request out of memory, if there is one; undefined says nothing. */
  held(request: FastifyRequest, grant: Grant): HeldAnswer | undefined;
}

/** A hook for the route's `onRequest`, before all others of the route. */
export function hotPath(path: HotPath) {
  const { tokens, scope, shared, answered, held, idleTimeoutMs } = path;
  const remembered = path.remembering.remembered();

  /** The answer, and whose it is, when all of it is at hand. */
  function find(request: FastifyRequest): HeldAnswer | undefined {
    const { headers, url = '' } = request.raw;
    const token = bearerToken(headers.authorization);
    const grant = token === undefined ? undefined : tokens.held?.(token);
    if (!grant?.scopes.includes(scope) || !accepts(headers)) return undefined;
    request.grant = grant;
    const owner = shared ? EVERYBODY : grant.organizationId;
    const known = remembered.get(owner, url);
    if (known) return known;
    const answer = held(request, grant);
    if (answer) remembered.set(owner, url, answer);
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
    if (reply.raw.writableLength > 0) cutWhenIdle(reply.raw, idleTimeoutMs);
    answered(request, status, performance.now() - started);
  };
}

/** @returns the status */
function send(
  { raw: request, id }: FastifyRequest,
  { raw: response }: FastifyReply,
  answer: HeldAnswer,
): number {
  const { headers } = request;
  const codings = headers['accept-encoding'] as string | undefined;
  const prepared = preparationOf(answer).in(chooseCoding(allowedCodings(codings), answer.body));
  const condition = headers['if-none-match'];
  const matching =
    condition === undefined ? undefined : matchingTag(condition, answer.body.hash, prepared.tag);
  if (matching === undefined) {
    response.writeHead(200, prepared.head.with(id));
    if (request.method === 'HEAD') response.end();
    else response.end(prepared.payload, 'latin1');
    return 200;
  }
  const head = matching === prepared.tag ? prepared.headUnmodified : headUnmodified(answer, matching);
  response.writeHead(304, head.with(id));
  response.end();
  return 304;
}

/** Header fields, of which one is the request's id. */
class Head {
  /** Name, value, name, value, … */
  readonly #fields: string[];
  readonly #idAt: number;

  constructor(fields: Readonly<Record<string, string>>, last: Readonly<Record<string, string>> = {}) {
    const before = Object.entries(fields).flat();
    this.#idAt = before.length + 1;
    this.#fields = [...before, 'x-request-id', '', ...Object.entries(last).flat()];
  }

  /** Always the same list: it is written out before anybody else can set another id. */
  with(id: string): string[] {
    this.#fields[this.#idAt] = id;
    return this.#fields;
  }
}

/** An answer in one coding, ready to be sent. */
interface Prepared {
  readonly tag: string;
  readonly head: Head;
  readonly headUnmodified: Head;
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
    head: new Head(
      { ...answerHeaders(answer), ...contentHeaders(tag, coding) },
      { 'content-length': String(bytes.length) },
    ),
    headUnmodified: headUnmodified(answer, tag),
    // A text goes out together with the header, in one write.
    payload: bytes.length <= TEXT_AT_MOST ? bytes.toString('latin1') : bytes,
  };
}

function headUnmodified(answer: HeldAnswer, tag: string): Head {
  return new Head({ ...answerHeaders(answer), etag: tag });
}

function bytesOf(body: EncodedBody, coding: Coding): Buffer {
  return body[coding] ?? body.identity;
}
