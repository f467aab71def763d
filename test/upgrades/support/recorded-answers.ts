/** The answers of one release, and what another release may change about them. */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

export interface RecordedAnswer {
  /** Name of the token; undefined without one. */
  readonly token?: string;
  readonly path: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly etag?: string;
  /** Text of a JSON body, otherwise the digest of the bytes. */
  readonly body: string;
}

/** These headers stay the same. Date, tier, request id, length, ETag and headers of the connection may differ. */
const KEPT_HEADERS = [
  'content-type',
  'cache-control',
  'vary',
  'fleetbook-as-of',
  'fleetbook-currency',
  'www-authenticate',
  'content-disposition',
];

/** `version` and `next` are opaque to clients: another release may give another value. `today` is the day of the request. */
const MAY_DIFFER = new Set(['version', 'next', 'today']);
/** Texts for people, and the id of the request. */
const OF_PROBLEMS = new Set(['detail', 'title', 'instance']);

export interface AskedRequest {
  readonly token?: string;
  readonly path: string;
}

export async function answerTo(
  url: string,
  { token, path }: AskedRequest,
  tokens: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<RecordedAnswer> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${tokens[token]}` };
  const response = await fetch(url + path, {
    headers: { 'accept-encoding': 'identity', ...authorization, ...headers },
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const isJson = response.headers.get('content-type')?.includes('json') && !path.endsWith('.ndjson');
  const etag = response.headers.get('etag');
  return {
    ...(token === undefined ? {} : { token }),
    path,
    status: response.status,
    headers: Object.fromEntries(
      KEPT_HEADERS.flatMap((name) => {
        const value = response.headers.get(name);
        return value === null ? [] : [[name, value]];
      }),
    ),
    ...(etag === null ? {} : { etag }),
    body: isJson ? bytes.toString() : `sha256 ${createHash('sha256').update(bytes).digest('hex')}`,
  };
}

/** An organization may have as many downloads at once. */
const REQUESTS_AT_ONCE = 8;
/** A reader needs a moment for its index of machines, and answers 503 with a pause until then. */
const PREPARED_WITHIN_MS = 20_000;
const OF_INDEX = /^\/v1\/machines\/(search|recommend)|\/alternatives$/;

/** Sends each recorded request again. Returns the differences that a release may not make. */
export async function differences(
  url: string,
  recorded: readonly RecordedAnswer[],
  tokens: Readonly<Record<string, string>>,
): Promise<string[]> {
  const found: string[][] = [];
  for (let from = 0; from < recorded.length; from += REQUESTS_AT_ONCE) {
    const some = recorded.slice(from, from + REQUESTS_AT_ONCE);
    found.push(...(await Promise.all(some.map((before) => compared(url, before, tokens)))));
  }
  return found.flat();
}

async function compared(
  url: string,
  before: RecordedAnswer,
  tokens: Readonly<Record<string, string>>,
): Promise<string[]> {
  const began = performance.now();
  let now = await answerTo(url, before, tokens);
  const isPreparing = () => now.status === 503 && OF_INDEX.test(before.path);
  while (isPreparing() && performance.now() - began < PREPARED_WITHIN_MS) {
    await sleep(50);
    now = await answerTo(url, before, tokens);
  }
  const found = differencesOf(before, now);
  if (before.etag !== undefined && now.status === before.status && before.body !== now.body) {
    // A client that kept the earlier bytes must not learn that they are still right.
    const { status } = await answerTo(url, before, tokens, { 'if-none-match': before.etag });
    if (status === 304) found.push('304 for the ETag of other bytes');
  }
  return found.map((each) => `${before.path} (token ${before.token ?? 'none'}): ${each}`);
}

export function differencesOf(before: RecordedAnswer, now: RecordedAnswer): string[] {
  if (before.status !== now.status) return [`status ${before.status} became ${now.status}: ${now.body}`];
  const headers = Object.entries(before.headers).flatMap(([name, value]) =>
    now.headers[name] === value ? [] : [`${name}: ${value} became ${now.headers[name]}`],
  );
  if (before.body === now.body) return headers;
  if (before.body.startsWith('sha256')) return [...headers, 'the bytes differ'];
  const ignored = before.status >= 400 ? OF_PROBLEMS : MAY_DIFFER;
  return [...headers, ...lost(JSON.parse(before.body), JSON.parse(now.body), '', ignored)];
}

/** Lists values that are missing or differ. New fields of objects are no difference: answers only grow. */
function lost(before: unknown, now: unknown, path: string, ignored: ReadonlySet<string>): string[] {
  if (Array.isArray(before)) {
    if (!Array.isArray(now) || now.length !== before.length)
      return [`${path}: ${before.length} elements became ${Array.isArray(now) ? now.length : typeof now}`];
    return before.flatMap((each, i) => lost(each, now[i], `${path}/${i}`, ignored));
  }
  if (typeof before === 'object' && before !== null) {
    if (typeof now !== 'object' || now === null) return [`${path}: an object became ${JSON.stringify(now)}`];
    return Object.entries(before).flatMap(([name, value]) => {
      const other = (now as Record<string, unknown>)[name];
      if (ignored.has(name) && typeof value === typeof other) return [];
      return lost(value, other, `${path}/${name}`, ignored);
    });
  }
  return before === now ? [] : [`${path}: ${JSON.stringify(before)} became ${JSON.stringify(now)}`];
}
