/** How a ready-made body becomes a response. Nothing is compressed or hashed here. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type Answer,
  type EncodedBody,
  HeldAnswer,
  TEXT_AT_MOST,
  type Tier,
} from '../snapshot/document/answer.ts';
import { cutWhenIdle } from './protocol/connections.ts';
import type { TellToClose } from './protocol/drain.ts';
import { allowedCodings, type Coding, chooseCoding, entityTag, matchingTag } from './protocol/negotiate.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Which tier answered; undefined until one did. */
    tier: Tier | undefined;
  }
}

export interface SenderOptions {
  /** Milliseconds that a client may take no byte of an answer before its connection is cut. */
  readonly idleTimeoutMs: number;
  readonly tellToClose: TellToClose;
}

/**
 * Sends what a reader answered to an authenticated request: in the coding that the client likes best, or 304 when it
 * has the content.
 * @param also header fields to be sent with it
 * @returns the status
 */
export type SendAnswer = (
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Answer,
  also?: ReturnType<FastifyReply['getHeaders']>,
) => 200 | 304;

/**
 * Answers are written without Fastify's way of sending: what can be made once for an answer is, instead of once for
 * each request, and a small body goes out together with its header, in one write.
 */
export function answerSender({ idleTimeoutMs, tellToClose }: SenderOptions): SendAnswer {
  return (request, reply, answer, also) => {
    request.tier = answer.tier;
    const { raw } = reply;
    tellToClose(raw);
    if (also)
      for (const [name, value] of Object.entries(also)) if (value !== undefined) raw.setHeader(name, value);
    const status = write(request, raw, answer);
    // Not before: what cannot be written is an error like any other.
    reply.hijack();
    if (raw.writableLength > 0) cutWhenIdle(request.raw, idleTimeoutMs);
    return status;
  };
}

function write({ raw: request, id }: FastifyRequest, response: ServerResponse, answer: Answer): 200 | 304 {
  const prepared = preparationOf(answer).in(codingFor(request, answer.body));
  const matching = knownTag(request, answer.body, prepared.tag);
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

/** The coding in which this body goes out. */
function codingFor(request: IncomingMessage, body: EncodedBody): Coding {
  return chooseCoding(allowedBy(request), body);
}

function allowedBy({ headers }: IncomingMessage): readonly Coding[] {
  return allowedCodings(headers['accept-encoding'] as string | undefined);
}

/** False while the coding that this client would like best is still to be made, see `EncodedBody.isPlainOnly`. */
export function canBeSent(request: IncomingMessage, { body }: Answer): boolean {
  return !body.isPlainOnly || allowedBy(request)[0] === 'identity';
}

/** The tag with which 304 is answered: there is one when the client has the content. */
function knownTag({ headers }: IncomingMessage, { hash }: EncodedBody, tag: string): string | undefined {
  const condition = headers['if-none-match'];
  return condition === undefined ? undefined : matchingTag(condition, hash, tag);
}

/** The header fields of an answer, of which one is the request's id. */
class Head {
  /** Name, value, name, value, … */
  readonly #fields: string[];

  constructor({ tier, asOf, currency }: Answer, fields: readonly string[]) {
    this.#fields = ['x-request-id', '', 'cache-control', 'private, no-cache'];
    this.#fields.push('vary', 'Authorization, Accept-Encoding', 'fleetbook-tier', tier);
    if (asOf !== undefined) this.#fields.push('fleetbook-as-of', asOf);
    if (currency !== undefined) this.#fields.push('fleetbook-currency', currency);
    this.#fields.push(...fields);
  }

  /** Always the same list: it is written out before anybody else can set another id. */
  with(id: string): string[] {
    this.#fields[1] = id;
    return this.#fields;
  }
}

function headUnmodified(answer: Answer, tag: string): Head {
  return new Head(answer, ['etag', tag]);
}

/** An answer in one coding, ready to be sent. */
class Prepared {
  readonly tag: string;
  readonly head: Head;
  /** The bytes, or a text of which each character is one byte. */
  readonly payload: Buffer | string;
  readonly #answer: Answer;
  #headUnmodified: Head | undefined;

  constructor(answer: Answer, coding: Coding) {
    const bytes = answer.body[coding] ?? answer.body.identity;
    this.#answer = answer;
    this.tag = entityTag(answer.body.hash, coding);
    const fields = ['etag', this.tag, 'content-type', 'application/json'];
    if (coding !== 'identity') fields.push('content-encoding', coding);
    fields.push('content-length', String(bytes.length));
    this.head = new Head(answer, fields);
    this.payload = bytes.length <= TEXT_AT_MOST ? bytes.toString('latin1') : bytes;
  }

  get headUnmodified(): Head {
    this.#headUnmodified ??= headUnmodified(this.#answer, this.tag);
    return this.#headUnmodified;
  }
}

class Preparation {
  readonly #answer: Answer;
  readonly #prepared: { [K in Coding]?: Prepared } = {};

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  in(coding: Coding): Prepared {
    const known = this.#prepared[coding];
    if (known) return known;
    const made = new Prepared(this.#answer, coding);
    this.#prepared[coding] = made;
    return made;
  }
}

/** Kept with an answer that memory holds; made for this once with any other. */
function preparationOf(answer: Answer): Preparation {
  if (!(answer instanceof HeldAnswer)) return new Preparation(answer);
  const { prepared } = answer;
  if (prepared instanceof Preparation) return prepared;
  const made = new Preparation(answer);
  answer.prepared = made;
  return made;
}

/** Sends a body that is the same for everybody, so that shared caches may keep it as long as they ask each time. */
export function sendPublic(request: FastifyRequest, reply: FastifyReply, body: EncodedBody): FastifyReply {
  const coding = codingFor(request.raw, body);
  const tag = entityTag(body.hash, coding);
  const matching = knownTag(request.raw, body, tag);
  reply.header('cache-control', 'no-cache').header('vary', 'Accept-Encoding');
  if (matching !== undefined) return reply.code(304).header('etag', matching).send();
  reply.code(200).header('etag', tag).header('content-type', 'application/json');
  if (coding !== 'identity') reply.header('content-encoding', coding);
  return reply.send(body[coding] ?? body.identity);
}
