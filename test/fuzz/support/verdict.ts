/** Rules for each answer to any request. */
import { brotliDecompressSync, gunzipSync } from 'node:zlib';

export interface FuzzAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The unparsed body. */
  readonly body: Buffer;
  /** HTTP has none for HEAD, 1xx, 204 and 304. */
  readonly isBare: boolean;
}

export interface Circumstances {
  /** The markers of organizations whose data the answer may contain. */
  readonly markers: readonly string[];
  /** Address and headers of the request: an error may repeat them. */
  readonly sent?: string;
  /** A document of a 200 must match the API's schema; without one, it must be JSON. */
  readonly validate?: ((document: unknown) => string | undefined) | undefined;
}

const MARKER = /zq[0-9a-f]{16}/g;
const PROBLEM_MEMBERS = ['type', 'title', 'status', 'detail', 'instance'] as const;
/** Content that no error may contain: a stack, a statement, a path of the machine. */
const INNARDS = /\n\s+at |node_modules|\.ts:\d|select .* from|ECONN|stack/i;
const BARE = [100, 204, 304];

/** Returns the fault of the answer; undefined if it is valid. */
export function wrongWith(
  answer: FuzzAnswer,
  { markers, sent = '', validate }: Circumstances,
): string | undefined {
  const { status, headers, isBare } = answer;
  if (!(status === 100 || (status >= 200 && status < 500) || status === 505)) return `status ${status}`;
  let body: string;
  try {
    body = decoded(answer).toString();
  } catch (error) {
    return `a body that its coding does not fit: ${error}`;
  }
  const seen = `${JSON.stringify(headers)}\n${body}`;
  // An error repeats a value of the request.
  const isRepeated = (marker: string) => status >= 400 && sent.includes(marker);
  const stranger = seen.match(MARKER)?.find((marker) => !markers.includes(marker) && !isRepeated(marker));
  if (stranger !== undefined) return `the data of another organization: ${stranger}`;
  if (BARE.includes(status) || status === 100) return body === '' ? undefined : 'a body where there is none';
  const type = headers['content-type'];
  if (status >= 400) {
    if (type !== 'application/problem+json') return `an error of type ${type}`;
    return isBare ? undefined : wrongWithProblem(answer, body);
  }
  if (status !== 200) return `status ${status}`;
  if (type !== 'application/json') return `an answer of type ${type}`;
  if (isBare) return undefined;
  try {
    return validate?.(JSON.parse(body));
  } catch {
    return `no JSON: ${body.slice(0, 80)}`;
  }
}

function wrongWithProblem({ status, headers }: FuzzAnswer, body: string): string | undefined {
  let problem: Record<string, unknown>;
  try {
    problem = JSON.parse(body);
  } catch {
    return `an error that is no JSON: ${body.slice(0, 80)}`;
  }
  const missing = PROBLEM_MEMBERS.find((name) => problem[name] === undefined);
  if (missing !== undefined) return `a problem without ${missing}`;
  if (problem.status !== status) return `a problem of status ${problem.status} with status ${status}`;
  if (problem.instance !== headers['x-request-id']) return 'a problem of another request';
  if (INNARDS.test(body)) return `a problem that tells too much: ${body}`;
  if (status === 401 && !headers['www-authenticate']) return '401 without WWW-Authenticate';
  if (status === 405 && !headers.allow) return '405 without Allow';
  return undefined;
}

function decoded({ headers, body }: FuzzAnswer): Buffer {
  if (body.length === 0) return body;
  switch (headers['content-encoding']) {
    case 'br':
      return brotliDecompressSync(body);
    case 'gzip':
      return gunzipSync(body);
    default:
      return body;
  }
}

/**
 * Parses the answers of a connection that has ended.
 * @param methods of the requests in order, if known: an answer to HEAD has no body
 * @throws Error for bytes that are not an answer, or half of one
 */
export function answersIn(bytes: Buffer, methods?: readonly string[]): FuzzAnswer[] {
  const answers: FuzzAnswer[] = [];
  let answered = 0;
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf('\r\n\r\n', start);
    const head = bytes.toString('latin1', start, end === -1 ? start + 200 : end);
    const [statusLine = '', ...lines] = head.split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]);
    if (end === -1 || Number.isNaN(status)) throw new Error(`no answer: ${JSON.stringify(head)}`);
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(':');
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const length = Number(headers['content-length'] ?? 0);
    const after = end + 4;
    const isHead =
      methods === undefined
        ? // A malformed request has no known method: the next answer shows whether this one has a body.
          isStart(bytes, after) && !isStart(bytes, after + length)
        : methods[answered] === 'HEAD';
    const isBare = isHead || BARE.includes(status);
    if (status >= 200) answered += 1;
    const size = isBare ? 0 : length;
    if (after + size > bytes.length) throw new Error(`half an answer: ${JSON.stringify(head)}`);
    answers.push({ status, headers, body: bytes.subarray(after, after + size), isBare });
    start = after + size;
  }
  return answers;
}

/** Whether an answer begins there, or the bytes end. */
function isStart(bytes: Buffer, at: number): boolean {
  return at === bytes.length || bytes.toString('latin1', at, at + 9) === 'HTTP/1.1 ';
}
