import { type IncomingMessage, type ServerResponse, validateHeaderValue } from 'node:http';
import type { Answer, EncodedBody } from '../../snapshot/document/answer.ts';
import { allowedCodings, type Coding, chooseCoding, entityTag, matchingTag } from '../protocol/negotiate.ts';
import { type Head, withFields, writeAnswer } from './write-answer.ts';

/** An answer with its heads, which are made once for each coding. */
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
    const { tag } = prepared;
    const matching = unmodifiedTag(request, body, tag);
    if (matching === undefined) {
      const bytes = request.method === 'HEAD' ? undefined : prepared.bytes;
      writeAnswer(response, withFields(prepared.head, also), requestId, bytes);
      return 200;
    }
    const head = matching === tag ? prepared.unmodified(this.#answer) : unmodified(this.#answer, matching);
    writeAnswer(response, withFields(head, also), requestId, undefined);
    return 304;
  }
}

class PreparedCoding {
  readonly tag: string;
  readonly bytes: Buffer;
  readonly #coding: Coding;
  readonly #mediaType: string;
  head: Head;
  #unmodified: Head | undefined;

  constructor(answer: Answer, mediaType: string, coding: Coding) {
    this.bytes = answer.body[coding] ?? answer.body.identity;
    this.tag = entityTag(answer.body.hash, coding);
    this.#coding = coding;
    this.#mediaType = mediaType;
    this.head = this.#headOf(answer);
  }

  setHeads(answer: Answer): void {
    this.head = this.#headOf(answer);
    this.#unmodified = undefined;
  }

  unmodified(answer: Answer): Head {
    this.#unmodified ??= unmodified(answer, this.tag);
    return this.#unmodified;
  }

  #headOf(answer: Answer): Head {
    const encoding = this.#coding === 'identity' ? '' : `content-encoding: ${this.#coding}\r\n`;
    return {
      status: 200,
      lines: `${linesOf(answer, this.tag)}content-type: ${this.#mediaType}\r\n${encoding}content-length: ${this.bytes.length}\r\n`,
    };
  }
}

function unmodified(answer: Answer, tag: string): Head {
  return { status: 304, lines: linesOf(answer, tag) };
}

const FIRST_LINES = 'cache-control: private, no-cache\r\nvary: Authorization, Accept-Encoding\r\n';

/** Returns the lines of a 304. Those of a 200 follow them. @throws TypeError for a value that would end its line */
function linesOf({ tier, asOf, currency }: Answer, tag: string): string {
  validateHeaderValue('fleetbook-as-of, fleetbook-currency, etag', `${asOf}${currency}${tag}`);
  const time = asOf === undefined ? '' : `fleetbook-as-of: ${asOf}\r\n`;
  const unit = currency === undefined ? '' : `fleetbook-currency: ${currency}\r\n`;
  return `${FIRST_LINES}fleetbook-tier: ${tier}\r\n${time}${unit}etag: ${tag}\r\n`;
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
