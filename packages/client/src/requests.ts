/** Sends requests with a deadline and retries. Requests for stored answers are conditional. */
import { FleetbookProblem, FleetbookUnreachable, problemOf } from './problem.ts';
import type { AnswerStore, StoredAnswer } from './store.ts';
import { sleep, withTimeout } from './time.ts';

export interface ClientOptions {
  /** The address of the API, e.g. `https://fleetbook.example.com`. It may have a path. */
  readonly url: string | URL;
  /** A token (`fb_…`), or a function that returns the token for each request. */
  readonly token: string | (() => string | Promise<string>);
  /** Stores answers for conditional requests. A `MemoryStore` by default; `false` for none. */
  readonly store?: AnswerStore | false | undefined;
  /** Maximum number of attempts per call; 4 by default. */
  readonly attempts?: number | undefined;
  /** Timeout of one attempt, in milliseconds; 10,000 by default. */
  readonly attemptTimeoutMs?: number | undefined;
  /** Deadline of a call, attempts and pauses included, in milliseconds; 30,000 by default. */
  readonly deadlineMs?: number | undefined;
  /** Maximum of the first pause between attempts, in milliseconds; 200 by default. It doubles each time, up to 5 seconds. */
  readonly pauseMs?: number | undefined;
  /** Used instead of the global `fetch`. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
}

export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Overrides the client's `deadlineMs`. */
  readonly deadlineMs?: number | undefined;
  /** Refuses data older than this many seconds: a `FleetbookProblem` with status 503. */
  readonly maxAge?: number | undefined;
}

export interface Answer<T> {
  readonly data: T;
  /** When the data was last verified against its source, RFC 3339. */
  readonly asOf: string | undefined;
  /** The currency of all prices in `data`, ISO 4217. */
  readonly currency: string | undefined;
  /** The place that answered: `memory`, `redis`, `postgres` or `disk`. */
  readonly tier: string | undefined;
  /** Identifies the request in the server's log. */
  readonly requestId: string | undefined;
  /** The API confirmed that the stored answer has not changed (status 304). */
  readonly isUnchanged: boolean;
}

export type Query = object;

/** Statuses after which the client retries. Every request only reads, so a retry is safe. */
const TRANSIENT_STATUSES = [429, 502, 503, 504];
const MAX_PAUSE_MS = 5000;

/** Options of one request, which override those of the client. */
interface RequestOptions extends CallOptions {
  readonly attempts?: number;
  readonly attemptTimeoutMs?: number;
  /** The answer's body stays open after `read`, and `signal` can still abort it. */
  readonly opensStream?: boolean;
}

export class Requests {
  readonly attempts: number;
  readonly attemptTimeoutMs: number;
  readonly #base: URL;
  readonly #token: ClientOptions['token'];
  readonly #store: AnswerStore | undefined;
  readonly #deadlineMs: number;
  readonly #pauseMs: number;
  readonly #fetch: NonNullable<ClientOptions['fetch']>;

  constructor(options: ClientOptions, store: AnswerStore | undefined) {
    checkOptions(options);
    this.#base = new URL(options.url);
    if (!this.#base.pathname.endsWith('/')) this.#base.pathname += '/';
    this.#token = options.token;
    this.#store = store;
    this.attempts = options.attempts ?? 4;
    this.attemptTimeoutMs = options.attemptTimeoutMs ?? 10_000;
    this.#deadlineMs = options.deadlineMs ?? 30_000;
    this.#pauseMs = options.pauseMs ?? 200;
    // Browsers throw if `fetch` is called as a method of another object.
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
  }

  /** Returns the address of a route. @param path without a leading slash */
  url(path: string, query: Query = {}): string {
    const url = new URL(path, this.#base);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, parameterValue(value));
    return url.href;
  }

  /**
   * Returns the milliseconds to wait before the next attempt: `Retry-After` plus exponential backoff with jitter.
   * @param failures consecutive failures, at least 1
   */
  pauseMs(failures: number, error: unknown, maxMs = MAX_PAUSE_MS): number {
    const retryAfterMs = error instanceof FleetbookProblem ? (error.retryAfter ?? 0) * 1000 : 0;
    return retryAfterMs + Math.random() * Math.min(maxMs, this.#pauseMs * 2 ** (failures - 1));
  }

  /** Requests JSON. Returns the stored answer if the API confirms that it has not changed. */
  json<T>(path: string, query: Query, options: RequestOptions): Promise<Answer<T>> {
    return this.#conditional(path, query, options, 'application/json', (body) => JSON.parse(body) as T);
  }

  /** Does the same for a text of a media type. */
  text(path: string, query: Query, options: RequestOptions, type: string): Promise<Answer<string>> {
    return this.#conditional(path, query, options, type, (body) => body);
  }

  async #conditional<T>(
    path: string,
    query: Query,
    options: RequestOptions,
    type: string,
    parse: (body: string) => T,
  ): Promise<Answer<T>> {
    const url = this.url(path, query);
    const stored = await this.#readStored(url);
    const { maxAge } = options;
    const headers = {
      accept: type,
      ...(stored && { 'if-none-match': stored.etag }),
      ...(maxAge !== undefined && { 'cache-control': `max-age=${maxAge}` }),
    };
    return this.request(url, headers, options, async (response) => {
      if (response.status === 304 && stored) return answerOf(response, parse(stored.body), true);
      if (!response.ok) throw await problemOf(response);
      const body = await response.text();
      const data = parse(body);
      await this.#writeStored(url, response, body);
      return answerOf(response, data, false);
    });
  }

  /**
   * Sends a request, and retries after transient failures. The timeout of an attempt includes `read`.
   * @throws FleetbookProblem; FleetbookUnreachable; the reason of the caller's signal
   */
  async request<T>(
    url: string,
    headers: Readonly<Record<string, string>>,
    options: RequestOptions,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const { signal: caller, attempts = this.attempts } = options;
    const deadline = performance.now() + (options.deadlineMs ?? this.#deadlineMs);
    for (let attempt = 1; ; attempt += 1) {
      const token = typeof this.#token === 'string' ? this.#token : await this.#token();
      const requestHeaders = new Headers({ ...headers, authorization: `Bearer ${token}` });
      const attemptMs = Math.min(
        options.attemptTimeoutMs ?? this.attemptTimeoutMs,
        deadline - performance.now(),
      );
      try {
        return await withTimeout(
          { ms: attemptMs, signal: caller, opensStream: options.opensStream },
          async (signal) => read(await this.#fetch(url, { headers: requestHeaders, signal })),
        );
      } catch (error) {
        caller?.throwIfAborted();
        const pauseMs = this.pauseMs(attempt, error);
        if (!isTransient(error) || attempt >= attempts || performance.now() + pauseMs >= deadline)
          throw error instanceof FleetbookProblem ? error : unreachable(url, attempt, error);
        await sleep(pauseMs, caller);
      }
    }
  }

  async #readStored(url: string): Promise<StoredAnswer | undefined> {
    try {
      return await this.#store?.get(url);
    } catch {
      return undefined;
    }
  }

  async #writeStored(url: string, { headers }: Response, body: string): Promise<void> {
    const etag = headers.get('etag');
    if (etag === null) return;
    try {
      await this.#store?.set(url, { etag, body });
    } catch {
      // The answer is valid without the store, e.g. if the store is full.
    }
  }
}

/** Returns true if a retry may succeed. All errors except problems are failed connections or invalid answers. */
export function isTransient(error: unknown): boolean {
  return !(error instanceof FleetbookProblem) || TRANSIENT_STATUSES.includes(error.status);
}

function unreachable(url: string, attempts: number, cause: unknown): FleetbookUnreachable {
  const counted = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
  const { origin, pathname } = new URL(url);
  const message = `No valid answer from ${origin}${pathname} after ${counted}: ${causeMessage(cause)}`;
  return new FleetbookUnreachable(message, { cause });
}

/** Returns the message of the innermost cause. The error of `fetch` itself has no details. */
export function causeMessage(error: unknown): string {
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  if (cause instanceof AggregateError && cause.message === '') cause = cause.errors[0];
  return cause instanceof Error ? cause.message : String(cause);
}

type Check = readonly [isValid: (value: unknown) => boolean, expected: string];

const positive: Check = [(value) => typeof value === 'number' && value > 0, 'a number above 0'];
const CHECKS: { readonly [K in keyof Required<ClientOptions>]: Check } = {
  url: [
    (value) => URL.canParse(String(value)) && /^https?:$/.test(new URL(String(value)).protocol),
    'an address such as https://fleetbook.example.com',
  ],
  token: [
    (value) => typeof value === 'function' || (typeof value === 'string' && value !== ''),
    'a token (fb_…), or a function that returns one',
  ],
  store: [(value) => value === false || typeof value === 'object', 'a store, or false'],
  attempts: [(value) => Number.isInteger(value) && Number(value) > 0, 'a whole number above 0'],
  attemptTimeoutMs: positive,
  deadlineMs: positive,
  pauseMs: [(value) => typeof value === 'number' && value >= 0, 'a number, 0 or above'],
  fetch: [(value) => typeof value === 'function', 'a function'],
};

/** @throws TypeError that names the invalid option, but not its value, which may be a token */
function checkOptions(options: ClientOptions): void {
  const known = Object.keys(CHECKS);
  for (const name of Object.keys(options))
    if (!known.includes(name))
      throw new TypeError(`FleetbookClient has no option "${name}"; its options are ${known.join(', ')}`);
  for (const [name, [isValid, expected]] of Object.entries(CHECKS)) {
    const value = options[name as keyof ClientOptions];
    const isRequired = name === 'url' || name === 'token';
    if ((isRequired || value !== undefined) && !isValid(value))
      throw new TypeError(`FleetbookClient: the option "${name}" must be ${expected}`);
  }
}

function answerOf<T>({ headers }: Response, data: T, isUnchanged: boolean): Answer<T> {
  const header = (name: string) => headers.get(name) ?? undefined;
  return {
    data,
    asOf: header('fleetbook-as-of'),
    currency: header('fleetbook-currency'),
    tier: header('fleetbook-tier'),
    requestId: header('x-request-id'),
    isUnchanged,
  };
}

function parameterValue(value: unknown): string {
  if (Array.isArray(value)) return value.join(',');
  const text = String(value);
  // The API accepts decimals without an exponent: 0.0000001, not 1e-7.
  return typeof value === 'number' && text.includes('e-') ? value.toFixed(18).replace(/(?<!0)0+$/, '') : text;
}
