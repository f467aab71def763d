import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer, EncodedBody } from '../../snapshot/document/answer.ts';
import { allowedCodings, type Coding, chooseCoding, entityTag, matchingTag } from '../protocol/negotiate.ts';

/** Bytes of a body that is cached as text: Node sends text and header in one write. */
const MAX_TEXT_BYTES = 16 * 1024;

/** An answer with its header lists and texts, which are made once for each coding. */
export class PreparedAnswer {
  #answer: Answer;
  readonly #mediaType: string;
  readonly #codings: { [K in Coding]?: PreparedCoding } = {};

  /** @param mediaType of the body */
  constructor(answer: Answer, mediaType = 'application/json') {
    this.#answer = answer;
    this.#mediaType = mediaType;
  }

  get answer(): Answer {
    return this.#answer;
  }

  get maxTextBytes(): number {
    const { identity, gzip, br, isPlainOnly } = this.#answer.body;
    const text = (body: Buffer | undefined) => (body && body.length <= MAX_TEXT_BYTES ? body.length : 0);
    // Missing codings will be smaller than the plain body.
    return isPlainOnly ? 3 * text(identity) : text(identity) + text(gzip) + text(br);
  }

  /** Sets another time for an unchanged body. */
  setAsOf(asOf: string | undefined): void {
    if (asOf === this.#answer.asOf) return;
    this.#answer = { ...this.#answer, asOf };
    for (const coding of Object.values(this.#codings)) coding.setHeads(this.#answer);
  }

  /** False while the coding that the client prefers is missing, see `EncodedBody.isPlainOnly`. */
  hasCodingFor(request: IncomingMessage): boolean {
    return !this.#answer.body.isPlainOnly || allowedBy(request)[0] === 'identity';
  }

  /**
   * Writes the whole response in the coding that the client prefers, or 304. Returns the status.
   * @param also names and values of further header fields in turn
   */
  write(
    request: IncomingMessage,
    response: ServerResponse,
    requestId: string,
    also?: readonly string[],
  ): 200 | 304 {
    const { body } = this.#answer;
    const coding = codingFor(request, body);
    this.#codings[coding] ??= new PreparedCoding(this.#answer, this.#mediaType, coding);
    const prepared = this.#codings[coding];
    const { tag, head, payload } = prepared;
    const matching = unmodifiedTag(request, body, tag);
    if (matching === undefined) {
      response.writeHead(200, complete(head, requestId, also));
      if (request.method === 'HEAD') response.end();
      else response.end(payload, 'latin1');
      return 200;
    }
    const unmodified = matching === tag ? prepared.unmodified(this.#answer) : headOf(this.#answer, matching);
    response.writeHead(304, complete(unmodified, requestId, also));
    response.end();
    return 304;
  }
}

/** Names and values of header fields in turn. The second element is the request's id. */
type Head = string[];

class PreparedCoding {
  readonly tag: string;
  /** The bytes, or a text with one character for each byte. */
  readonly payload: Buffer | string;
  readonly #coding: Coding;
  readonly #mediaType: string;
  head: Head;
  #unmodified: Head | undefined;

  constructor(answer: Answer, mediaType: string, coding: Coding) {
    const bytes = answer.body[coding] ?? answer.body.identity;
    this.tag = entityTag(answer.body.hash, coding);
    this.payload = bytes.length <= MAX_TEXT_BYTES ? bytes.toString('latin1') : bytes;
    this.#coding = coding;
    this.#mediaType = mediaType;
    this.head = this.#headOf(answer);
  }

  setHeads(answer: Answer): void {
    this.head = this.#headOf(answer);
    this.#unmodified = undefined;
  }

  /** Returns the fields of a 304. */
  unmodified(answer: Answer): Head {
    this.#unmodified ??= headOf(answer, this.tag);
    return this.#unmodified;
  }

  #headOf(answer: Answer): Head {
    const head = headOf(answer, this.tag);
    head.push('content-type', this.#mediaType);
    if (this.#coding !== 'identity') head.push('content-encoding', this.#coding);
    head.push('content-length', String(this.payload.length));
    return head;
  }
}

/** Returns the fields of a 304. Those of a 200 follow them. */
function headOf({ tier, asOf, currency }: Answer, tag: string): Head {
  const head = ['x-request-id', '', 'cache-control', 'private, no-cache'];
  head.push('vary', 'Authorization, Accept-Encoding', 'fleetbook-tier', tier);
  if (asOf !== undefined) head.push('fleetbook-as-of', asOf);
  if (currency !== undefined) head.push('fleetbook-currency', currency);
  head.push('etag', tag);
  return head;
}

/** Sets the id in the list itself: Node copies the list before the next request. */
function complete(head: Head, requestId: string, also: readonly string[] | undefined): Head {
  head[1] = requestId;
  return also?.length ? head.concat(also) : head;
}

export function codingFor(request: IncomingMessage, body: EncodedBody): Coding {
  return chooseCoding(allowedBy(request), body);
}

function allowedBy({ headers }: IncomingMessage): readonly Coding[] {
  const header = headers['accept-encoding'];
  return allowedCodings(header === undefined ? undefined : String(header));
}

/** Returns the tag of a 304; undefined if the client needs the body. */
export function unmodifiedTag(
  { headers }: IncomingMessage,
  { hash }: EncodedBody,
  tag: string,
): string | undefined {
  const condition = headers['if-none-match'];
  return condition === undefined ? undefined : matchingTag(condition, hash, tag);
}
