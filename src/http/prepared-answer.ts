import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer, EncodedBody } from '../snapshot/document/answer.ts';
import { allowedCodings, type Coding, chooseCoding, entityTag, matchingTag } from './protocol/negotiate.ts';

/** A body up to this size (bytes) is kept as text: text goes out in one write with the header. */
const TEXT_AT_MOST = 16 * 1024;

/** An answer as it is sent. Header lists and texts are made once for each coding. */
export class PreparedAnswer {
  #answer: Answer;
  readonly #codings: { [K in Coding]?: PreparedCoding } = {};

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  get answer(): Answer {
    return this.#answer;
  }

  /** Bytes of texts, if it is asked for in every coding. */
  get mostBytes(): number {
    const { identity, gzip, br, isPlainOnly } = this.#answer.body;
    const text = (body: Buffer | undefined) => (body && body.length <= TEXT_AT_MOST ? body.length : 0);
    // Codings that are made later are smaller than the plain body.
    return isPlainOnly ? 3 * text(identity) : text(identity) + text(gzip) + text(br);
  }

  /** The data was read anew and has not changed: header fields change, bodies stay. */
  setAsOf(asOf: string | undefined): void {
    if (asOf === this.#answer.asOf) return;
    this.#answer = { ...this.#answer, asOf };
    for (const coding of Object.values(this.#codings)) coding.setHeads(this.#answer);
  }

  /**
   * False while the coding that this client would like best is still to be made, see `EncodedBody.isPlainOnly`.
   */
  canBeSentTo(request: IncomingMessage): boolean {
    return !this.#answer.body.isPlainOnly || allowedBy(request)[0] === 'identity';
  }

  /**
   * Writes the whole response: in the coding that the client likes best, or 304 when it has the content.
   * @returns the status
   */
  write(request: IncomingMessage, response: ServerResponse, requestId: string): 200 | 304 {
    const coding = codingFor(request, this.#answer.body);
    const prepared = this.#codings[coding] ?? this.#prepare(coding);
    const matching = knownTag(request, this.#answer.body, prepared.tag);
    if (matching === undefined) {
      response.writeHead(200, withId(prepared.head, requestId));
      if (request.method === 'HEAD') response.end();
      else response.end(prepared.payload, 'latin1');
      return 200;
    }
    const head =
      matching === prepared.tag ? prepared.headUnmodified : headOf(this.#answer, ['etag', matching]);
    response.writeHead(304, withId(head, requestId));
    response.end();
    return 304;
  }

  #prepare(coding: Coding): PreparedCoding {
    const prepared = new PreparedCoding(this.#answer, coding);
    this.#codings[coding] = prepared;
    return prepared;
  }
}

/** Names and values of header fields in turn. The second element is the request's id. */
type Head = string[];

class PreparedCoding {
  readonly tag: string;
  /** The bytes, or a text of which each character is one byte. */
  readonly payload: Buffer | string;
  readonly #coding: Coding;
  head: Head = [];
  headUnmodified: Head = [];

  constructor(answer: Answer, coding: Coding) {
    const bytes = answer.body[coding] ?? answer.body.identity;
    this.tag = entityTag(answer.body.hash, coding);
    this.payload = bytes.length <= TEXT_AT_MOST ? bytes.toString('latin1') : bytes;
    this.#coding = coding;
    this.setHeads(answer);
  }

  setHeads(answer: Answer): void {
    const fields = ['etag', this.tag, 'content-type', 'application/json'];
    if (this.#coding !== 'identity') fields.push('content-encoding', this.#coding);
    fields.push('content-length', String(this.payload.length));
    this.head = headOf(answer, fields);
    this.headUnmodified = headOf(answer, ['etag', this.tag]);
  }
}

function headOf({ tier, asOf, currency }: Answer, fields: readonly string[]): Head {
  const head = ['x-request-id', '', 'cache-control', 'private, no-cache'];
  head.push('vary', 'Authorization, Accept-Encoding', 'fleetbook-tier', tier);
  if (asOf !== undefined) head.push('fleetbook-as-of', asOf);
  if (currency !== undefined) head.push('fleetbook-currency', currency);
  head.push(...fields);
  return head;
}

/** Always the same list: Node writes it out before anybody else can set another id. */
function withId(head: Head, requestId: string): Head {
  head[1] = requestId;
  return head;
}

/** The coding in which this body goes out. */
export function codingFor(request: IncomingMessage, body: EncodedBody): Coding {
  return chooseCoding(allowedBy(request), body);
}

function allowedBy({ headers }: IncomingMessage): readonly Coding[] {
  const header = headers['accept-encoding'];
  return allowedCodings(header === undefined ? undefined : String(header));
}

/** The tag with which 304 answers; undefined when the client does not have the content. */
export function knownTag(
  { headers }: IncomingMessage,
  { hash }: EncodedBody,
  tag: string,
): string | undefined {
  const condition = headers['if-none-match'];
  return condition === undefined ? undefined : matchingTag(condition, hash, tag);
}
