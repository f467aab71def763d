/** Reads raw answers, byte by byte. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'vitest';

export interface WireRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly string[];
  readonly version?: '1.0' | '1.1';
  readonly body?: string;
}

/** An answer without its date. */
export interface WireAnswer {
  /** Status line and header fields, in the order and spelling as sent. */
  readonly head: readonly string[];
  /** In latin1, so that each character is one byte. */
  readonly body: string;
}

/** An open connection counts as hanging after this time (ms); the received bytes show the place. */
const HANGS_MS = 10_000;

/** Sends the requests directly after each other on one connection. Returns the answers. */
export async function converse(port: number, requests: readonly WireRequest[]): Promise<WireAnswer[]> {
  const socket = connect({ port, host: '127.0.0.1' });
  await once(socket, 'connect');
  const { promise, resolve, reject } = Promise.withResolvers<WireAnswer[]>();
  const received: Buffer[] = [];
  const answers = () => split(Buffer.concat(received).toString('latin1'), requests);
  socket.on('data', (chunk: Buffer) => {
    received.push(chunk);
    const found = answers();
    if (found.length === requests.length) resolve(found);
  });
  const missing = () => {
    const { method, target } = requests[answers().length] ?? expect.unreachable();
    reject(new Error(`no whole answer to ${method} ${target}`));
  };
  socket.once('close', missing);
  const hanging = setTimeout(missing, HANGS_MS);
  for (const { method, target, headers, version = '1.1', body = '' } of requests) {
    const lines = [`${method} ${target} HTTP/${version}`, 'Host: a', ...headers];
    socket.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1'));
  }
  try {
    return await promise;
  } finally {
    clearTimeout(hanging);
    socket.off('close', missing).destroy();
  }
}

/** Returns the value of a header field. The name is case-sensitive. */
export function header(answer: WireAnswer | undefined, name: string): string | undefined {
  return answer?.head.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
}

/** The answers that have arrived whole. */
function split(text: string, requests: readonly WireRequest[]): WireAnswer[] {
  const answers: WireAnswer[] = [];
  let start = 0;
  for (const { method } of requests) {
    const end = text.indexOf('\r\n\r\n', start);
    if (end === -1) break;
    const head = text.slice(start, end).split('\r\n');
    const length = head.find((line) => /^content-length: /i.test(line))?.split(': ')[1];
    const isBare = method === 'HEAD' || head[0]?.split(' ')[1] === '304';
    start = end + 4 + (isBare ? 0 : Number(length));
    if (start > text.length) break;
    answers.push({ head: head.filter((line) => !/^date: /i.test(line)), body: text.slice(end + 4, start) });
  }
  return answers;
}
