/** Answers malformed requests as problems. Node alone would send an empty answer, or none. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { NO_ROUTE, type Recorder } from '../record-requests.ts';
import { cutWhenIdle } from './drain.ts';
import { METHOD_NOT_ALLOWED, type Problem, plainProblem, STATUS_CODES } from './problem.ts';
import { newRequestId, requestIdOf } from './request.ts';

const BAD_REQUEST = plainProblem(400, 'This is not a well-formed HTTP/1.1 request.');
const HAS_BODY = plainProblem(400, 'GET and HEAD have no body here.');
const EXPECTATION_FAILED = plainProblem(417, 'No other expectation than 100-continue is known here.');

/** By the code of Node's parser. Any other code means a malformed request. */
const PROBLEMS: Readonly<Record<string, Problem>> = {
  ERR_HTTP_REQUEST_TIMEOUT: plainProblem(408, 'The request took too long to arrive.'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: plainProblem(413, 'The chunk extensions of the body are too long.'),
  HPE_HEADER_OVERFLOW: plainProblem(431, 'The request line and the header fields are too long together.'),
  HPE_INVALID_VERSION: plainProblem(505, 'HTTP/1.1 is spoken here.'),
};

/** A well-formed request line; its method may be unknown to Node. */
const REQUEST_LINE = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+ [^\s]+ HTTP\/1\.[01]\r?\n/;

const LINGER_MS = 1000;

export interface ClientError extends Error {
  readonly code?: string;
  readonly rawPacket?: unknown;
}

export function clientErrorHandler(recorder: Recorder) {
  return (error: ClientError, socket: Duplex): void => {
    if (socket.destroyed || socket.writableEnded) return;
    const problem = problemOf(error);
    if (problem === undefined || !socket.writable || isAnswering(socket)) {
      socket.destroy();
      return;
    }
    const requestId = newRequestId();
    refuse(socket, problem, requestId);
    recorder.refused(NO_ROUTE, problem.status, requestId, error.code);
  };
}

/** Answers a request before the framework. */
export type Refuse = (problem: Problem, request: IncomingMessage, response: ServerResponse) => void;

export function refuser(recorder: Recorder, idleTimeoutMs: number): Refuse {
  return (problem, request, response) => {
    const requestId = requestIdOf(request);
    const body = problem.body(requestId);
    const headers = { ...problem.headers, 'content-length': body.length, 'x-request-id': requestId };
    cutWhenIdle(request, idleTimeoutMs);
    response.writeHead(problem.status, headers).end(body);
    recorder.refused(request.method ?? NO_ROUTE, problem.status, requestId, undefined);
  };
}

/** Answers a request whose body is not read. */
export function bodyRefuser(recorder: Recorder, refuseRequest: Refuse) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    const { socket, method } = request;
    // An answer before this one is still sent, or there is no socket.
    if (method !== 'GET' || response.socket !== socket || !(socket instanceof Socket)) {
      refuseRequest(HAS_BODY, request, response);
      return;
    }
    const requestId = requestIdOf(request);
    refuse(socket, HAS_BODY, requestId);
    socket.pause();
    recorder.refused(method, HAS_BODY.status, requestId, undefined);
  };
}

export function answerUpgradesAndExpects(server: Server, recorder: Recorder, refuseRequest: Refuse): void {
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    // Its body is not read.
    response.shouldKeepAlive = false;
    refuseRequest(EXPECTATION_FAILED, request, response);
  });
  server.on('connect', (request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => socket.destroy());
    const requestId = requestIdOf(request);
    refuse(socket, METHOD_NOT_ALLOWED, requestId);
    recorder.refused('CONNECT', METHOD_NOT_ALLOWED.status, requestId, undefined);
  });
}

function problemOf({ code, rawPacket }: ClientError): Problem | undefined {
  const known = PROBLEMS[code ?? ''];
  if (known) return known;
  // An unknown method is not allowed; a TLS greeting or garbage is not a request.
  if (code === 'HPE_INVALID_METHOD' && rawPacket instanceof Uint8Array) {
    const start = Buffer.from(rawPacket.subarray(0, 65_536)).toString('latin1');
    return REQUEST_LINE.test(start) ? METHOD_NOT_ALLOWED : BAD_REQUEST;
  }
  return code?.startsWith('HPE_') ? BAD_REQUEST : undefined;
}

/** Returns true if a response is partly sent: another one must not be written into it. */
function isAnswering(socket: Duplex): boolean {
  const response: unknown = Reflect.get(socket, '_httpMessage');
  return typeof response === 'object' && response !== null && Reflect.get(response, 'headersSent') === true;
}

function refuse(socket: Duplex, problem: Problem, requestId: string): void {
  const body = problem.body(requestId);
  const headers = {
    date: new Date().toUTCString(),
    ...problem.headers,
    'content-length': body.length,
    'x-request-id': requestId,
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join('')}\r\n`;
  // The rest of the request is still read: closing over unread bytes resets the connection, and the answer is lost.
  socket.end(Buffer.concat([Buffer.from(head, 'latin1'), body]));
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}
