/** The fuzz's judge: it must find each fault, otherwise the fuzz proves nothing. */
import { describe, expect, it } from 'vitest';
import { answersIn, type FuzzAnswer, wrongWith } from './support/verdict.ts';

const OWN = 'zq0123456789abcdef';
const OTHERS = 'zqfedcba9876543210';
const PROBLEM = { type: 'about:blank', title: 'Not Found', status: 404, detail: 'Nothing.', instance: 'r1' };

function answer(status: number, document: unknown, headers: FuzzAnswer['headers'] = {}): FuzzAnswer {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  const body = Buffer.from(typeof document === 'string' ? document : JSON.stringify(document));
  return { status, headers: { 'content-type': type, 'x-request-id': 'r1', ...headers }, body, isBare: false };
}
const judged = (given: FuzzAnswer) =>
  wrongWith(given, { markers: [OWN], validate: (found) => (Array.isArray(found) ? undefined : 'no list') });

describe('an answer', () => {
  it('is accepted if it is correct', () => {
    expect(judged(answer(200, [OWN]))).toBeUndefined();
    expect(judged(answer(404, PROBLEM))).toBeUndefined();
    expect(judged({ ...answer(304, ''), isBare: true })).toBeUndefined();
  });

  it.each<[what: string, given: FuzzAnswer, fault: RegExp]>([
    ['a failure', answer(500, { ...PROBLEM, status: 500 }), /^status 500/],
    ['an unavailability', answer(503, { ...PROBLEM, status: 503 }), /^status 503/],
    ['a redirection', answer(302, ''), /^status 302/],
    ["another organization's data", answer(200, [OTHERS]), /another organization/],
    ["another organization's data in a header", answer(200, [], { etag: OTHERS }), /another organization/],
    ["another organization's data in an error", answer(404, { ...PROBLEM, detail: OTHERS }), /another organ/],
    ['a document outside of the schema', answer(200, {}), /no list/],
    ['half a document', answer(200, '[1'), /no JSON/],
    ['an error in HTML', answer(404, '<html>', { 'content-type': 'text/html' }), /of type text\/html/],
    ['an error that is not JSON', answer(404, 'oops'), /no JSON/],
    ['an error without an instance', answer(404, { ...PROBLEM, instance: undefined }), /without instance/],
    ['an error of another status', answer(404, { ...PROBLEM, status: 400 }), /status 400 with status 404/],
    ['an error of another request', answer(404, { ...PROBLEM, instance: 'r2' }), /another request/],
    ['an error with a stack', answer(404, { ...PROBLEM, detail: 'at app.ts:12' }), /tells too much/],
    ['401 without a challenge', answer(401, { ...PROBLEM, status: 401 }), /WWW-Authenticate/],
    ['405 without allowed methods', answer(405, { ...PROBLEM, status: 405 }), /Allow/],
    ['a wrong coding', answer(200, [], { 'content-encoding': 'gzip' }), /coding/],
  ])('that is %s is found', (_, given, fault) => {
    expect(judged(given)).toMatch(fault);
  });
});

describe('the bytes of a connection', () => {
  const head = (status: number, length: number) =>
    `HTTP/1.1 ${status} X\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n`;
  const statuses = (text: string, methods?: string[]) =>
    answersIn(Buffer.from(text), methods).map(({ status, body }) => [status, body.toString()]);

  it('are its answers in order', () => {
    const text = `HTTP/1.1 100 Continue\r\n\r\n${head(200, 2)}hi${head(404, 1)}${head(200, 1)}!`;
    const expected = [
      [100, ''],
      [200, 'hi'],
      [404, ''],
      [200, '!'],
    ];
    expect(statuses(text, ['POST', 'HEAD', 'GET'])).toEqual(expected);
    expect(statuses(text)).toEqual(expected);
  });

  it.each([`${head(200, 3)}hi`, 'HTTP/1.1 200 OK\r\n', `${head(200, 2)}hi there`, 'garbage'])(
    'are rejected if they are not answers: %j',
    (text) => {
      expect(() => statuses(text, ['GET'])).toThrow(/answer/);
    },
  );
});
