/**
 * Writes the head and the body of an answer at once. For `writeHead`, Node checks and matches each field of each answer, and a body in
 * a buffer is a second piece for the kernel. Here the lines are ready, and head and body leave in one buffer.
 */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Writable } from 'node:stream';
import { takeAddedFields } from '../protocol/cors.ts';

/** What Node has between `writeHead` and the connection. It is not documented, so `takesLines` tries it. */
interface NodeResponse {
  readonly _header: string;
  _headerSent: boolean;
  _hasBody: boolean;
  /** Makes the head of these lines. Adds Date, Connection and Keep-Alive, and to a response with a body also how its end is found. */
  _storeHeader(lines: string): void;
}

/** Head and body of a longer answer are two pieces: the copy would take longer. */
const LONGEST_IN_ONE_PIECE = 16 * 1024;

const REASONS = { 200: 'OK', 304: 'Not Modified' } as const;

/** A head without the request's id. */
export interface Head {
  readonly status: 200 | 304;
  /** Lines of fields, each with its end. Those of a 200 have the length of the body. */
  readonly lines: string;
}

/** Returns the head with further fields, if there are any. @param fields names and values in turn, well formed */
export function withFields(head: Head, fields: readonly string[] | undefined): Head {
  if (!fields?.length) return head;
  let { lines } = head;
  for (let i = 0; i < fields.length; i += 2) lines += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return { ...head, lines };
}

/** Writes the whole response. @param requestId well formed @param body undefined for none */
export function writeAnswer(
  response: ServerResponse,
  prepared: Head,
  requestId: string,
  body: Buffer | undefined,
): void {
  const head = withFields(prepared, takeAddedFields(response));
  if (!takesLines || isObserved(response)) writeFields(response, head, requestId);
  else writeLines(response, head, requestId, body !== undefined);
  if (body === undefined) response.end();
  else if (!takesLines || !sentInOnePiece(response, body)) response.end(body);
}

/** True if fields were set before, or if someone waits for `writeHead`. */
function isObserved(response: ServerResponse): boolean {
  return response.writeHead !== ServerResponse.prototype.writeHead || response.getHeaderNames().length > 0;
}

function writeFields(response: ServerResponse, { status, lines }: Head, requestId: string): void {
  const fields = lines
    .split('\r\n')
    .slice(0, -1)
    .flatMap((line) => {
      const end = line.indexOf(': ');
      return [line.slice(0, end), line.slice(end + 2)];
    });
  response.writeHead(status, ['x-request-id', requestId, ...fields]);
}

function writeLines(
  response: ServerResponse,
  { status, lines }: Head,
  requestId: string,
  hasBody: boolean,
): void {
  const raw = response as unknown as NodeResponse;
  response.statusCode = status;
  // The lines of a 200 have the length of the body. Given as a field, Node would match it against patterns.
  raw._hasBody = false;
  // HTTP/1.0 keeps the connection too if the length is known.
  if (status === 200) response.useChunkedEncodingByDefault = true;
  raw._storeHeader(`HTTP/1.1 ${status} ${REASONS[status]}\r\nx-request-id: ${requestId}\r\n${lines}`);
  raw._hasBody = hasBody;
}

/** Has the bytes of one answer until the kernel has them, which is mostly before `end` returns. */
let piece = Buffer.allocUnsafeSlow(LONGEST_IN_ONE_PIECE);

/** Sends the head that Node has made, and the body. Returns false for a long answer, and for one that waits for those before it. */
function sentInOnePiece(response: ServerResponse, body: Buffer): boolean {
  const raw = response as unknown as NodeResponse;
  const head = raw._header;
  const length = head.length + body.length;
  if (length > piece.length || response.socket?.writableLength !== 0) return false;
  // Fastify's `inject` has its own.
  if (response.end !== ServerResponse.prototype.end) return false;
  piece.write(head, 'latin1');
  body.copy(piece, head.length);
  raw._headerSent = true;
  response.end(piece.subarray(0, length));
  // The connection refers to the rest.
  if (response.writableLength > 0) piece = Buffer.allocUnsafeSlow(LONGEST_IN_ONE_PIECE);
  return true;
}

/** Whether this Node sends the same bytes for lines and one piece as for fields and `end`. */
export const takesLines = isSame(200) && isSame(304);

function isSame(status: 200 | 304): boolean {
  const body = status === 200 ? Buffer.from('{}') : undefined;
  const head = { status, lines: `etag: "a"\r\n${body ? 'content-length: 2\r\n' : ''}` };
  try {
    const expected = sentBy((response) => {
      writeFields(response, head, 'id');
      response.end(body);
    });
    const found = sentBy((response) => {
      writeLines(response, head, 'id', body !== undefined);
      if (!body) response.end();
      else if (!sentInOnePiece(response, body)) throw new Error('unreachable: nothing waits');
    });
    return found !== '' && found === expected;
  } catch {
    return false;
  }
}

/** Returns what a response sends, without its date. */
function sentBy(write: (response: ServerResponse) => void): string {
  const chunks: Buffer[] = [];
  const connection = new Writable({
    write(chunk: Buffer, _, done) {
      chunks.push(Buffer.from(chunk));
      done();
    },
  });
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(Object.assign(request, { httpVersionMajor: 1, httpVersionMinor: 1 }));
  response.sendDate = false;
  response.assignSocket(connection as Socket);
  write(response);
  return Buffer.concat(chunks).toString('latin1');
}
