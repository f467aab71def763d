/** How the API is asked: within a deadline, again after what passes, and by entity tags where an answer is kept. */
import { FleetbookProblem, FleetbookUnreachable, problemOf } from './problem.ts';
import type { AnswerStore, StoredAnswer } from './store.ts';
import { sleep, withTimeout } from './time.ts';

export interface ClientOptions {
  /** Where the API is, e.g. `https://fleetbook.example.com`; a path in it is kept. */
  readonly url: string | URL;
  /** `fb_…`, or what gives one for each request. */
  readonly token: string | (() => string | Promise<string>);
  /** Where answers are kept to be confirmed; a `MemoryStore` unless given, false for none. */
  readonly store?: AnswerStore | false | undefined;
  /** Times that a question is asked at the most; 4 unless given. */
  readonly attempts?: number | undefined;
  /** Milliseconds for one of them; 10,000 unless given. */
  readonly attemptTimeoutMs?: number | undefined;
  /** Milliseconds for all of them and the pauses between them; 30,000 unless given. */
  readonly deadlineMs?: number | undefined;
  /** Milliseconds that the first pause takes at the most, 200 unless given; it doubles each time, up to 5 seconds. */
  readonly pauseMs?: number | undefined;
  /** Asks instead of the global `fetch`. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
}

export interface CallOptions {
  /** Ends the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Instead of the client's. */
  readonly deadlineMs?: number | undefined;
}

export interface Answer<T> {
  readonly data: T;
  /** When the data was last verified against its source, RFC 3339. */
  readonly asOf: string | undefined;
  /** Of all prices in `data`, ISO 4217. */
  readonly currency: string | undefined;
  /** Which tier answered. */
  readonly tier: string | undefined;
  readonly requestId: string | undefined;
  /** True where the API has said that what was kept is still right: the data is the same as before. */
  readonly isUnchanged: boolean;
}

export type Query = object;

/** Statuses that pass. A question only reads, so that asking twice does no harm. */
const PASSING = [429, 502, 503, 504];
const LONGEST_PAUSE_MS = 5000;

/** Options of one request, which override those of the client. */
interface AskOptions extends CallOptions {
  readonly attempts?: number;
  readonly attemptTimeoutMs?: number;
  /** Leaves the answer's body open, until `signal` fires. */
  readonly staysOpen?: boolean;
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
    // Not the function itself: browsers want it called on the global object.
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
  }

  /** @param path without a slash in front */
  url(path: string, query: Query = {}): string {
    const url = new URL(path, this.#base);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, parameterText(value));
    return url.href;
  }

  /** Milliseconds to wait before the next attempt: chosen by chance, so that clients that failed together spread. */
  pause(failures: number, error: unknown, longestMs = LONGEST_PAUSE_MS): number {
    const told = error instanceof FleetbookProblem ? (error.retryAfter ?? 0) * 1000 : 0;
    return told + Math.random() * Math.min(longestMs, this.#pauseMs * 2 ** (failures - 1));
  }

  /** Requests JSON. Returns the stored answer if the API confirms it. */
  async json<T>(path: string, query: Query, options: AskOptions): Promise<Answer<T>> {
    const url = this.url(path, query);
    const kept = await this.#kept(url);
    const headers = { accept: 'application/json', ...(kept && { 'if-none-match': kept.etag }) };
    return this.ask(url, headers, options, async (response) => {
      if (response.status === 304 && kept) return answerOf<T>(response, JSON.parse(kept.body), true);
      if (!response.ok) throw await problemOf(response);
      const body = await response.text();
      const data = JSON.parse(body);
      await this.#keep(url, response, body);
      return answerOf<T>(response, data, false);
    });
  }

  /**
   * Asks, again after what passes, and reads the answer within the same time.
   * @throws FleetbookProblem · FleetbookUnreachable · the reason of the caller's signal
   */
  async ask<T>(
    url: string,
    headers: Readonly<Record<string, string>>,
    options: AskOptions,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const { signal: caller, attempts = this.attempts } = options;
    const until = performance.now() + (options.deadlineMs ?? this.#deadlineMs);
    for (let attempt = 1; ; attempt += 1) {
      const token = typeof this.#token === 'string' ? this.#token : await this.#token();
      const sent = new Headers({ ...headers, authorization: `Bearer ${token}` });
      const attemptMs = Math.min(
        options.attemptTimeoutMs ?? this.attemptTimeoutMs,
        until - performance.now(),
      );
      try {
        return await withTimeout(
          { ms: attemptMs, signal: caller, staysOpen: options.staysOpen },
          async (signal) => read(await this.#fetch(url, { headers: sent, signal })),
        );
      } catch (error) {
        caller?.throwIfAborted();
        const pauseMs = this.pause(attempt, error);
        if (!isPassing(error) || attempt >= attempts || performance.now() + pauseMs >= until)
          throw error instanceof FleetbookProblem ? error : unreachable(url, attempt, error);
        await sleep(pauseMs, caller);
      }
    }
  }

  async #kept(url: string): Promise<StoredAnswer | undefined> {
    try {
      return await this.#store?.get(url);
    } catch {
      return undefined;
    }
  }

  async #keep(url: string, { headers }: Response, body: string): Promise<void> {
    const etag = headers.get('etag');
    if (etag === null) return;
    try {
      await this.#store?.set(url, { etag, body });
    } catch {
      // A store that is full or gone costs a saving, not an answer.
    }
  }
}

/** Returns whether a retry may succeed. Without a problem, the answer was incomplete. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof FleetbookProblem) || PASSING.includes(error.status);
}

function unreachable(url: string, attempts: number, cause: unknown): FleetbookUnreachable {
  const why = causeOf(cause);
  const { origin, pathname } = new URL(url);
  return new FleetbookUnreachable(`No answer of ${origin}${pathname} in ${attempts} attempts: ${why}`, {
    cause,
  });
}

/** The message of the first cause: `fetch` itself only says that it failed. */
export function causeOf(error: unknown): string {
  let found = error;
  while (found instanceof Error && found.cause instanceof Error) found = found.cause;
  if (found instanceof AggregateError && found.message === '') found = found.errors[0];
  return found instanceof Error ? found.message : String(found);
}

type Check = readonly [isGood: (value: unknown) => boolean, expected: string];

const aboveZero: Check = [(value) => typeof value === 'number' && value > 0, 'a number above 0'];
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
  attemptTimeoutMs: aboveZero,
  deadlineMs: aboveZero,
  pauseMs: [(value) => typeof value === 'number' && value >= 0, 'a number, 0 or above'],
  fetch: [(value) => typeof value === 'function', 'a function'],
};

/** @throws TypeError that names the option, and never its value: it may be a token */
function checkOptions(options: ClientOptions): void {
  const known = Object.keys(CHECKS);
  for (const name of Object.keys(options))
    if (!known.includes(name))
      throw new TypeError(`FleetbookClient has no option "${name}"; it has ${known.join(', ')}`);
  for (const [name, [isGood, expected]] of Object.entries(CHECKS)) {
    const value = options[name as keyof ClientOptions];
    const isNeeded = name === 'url' || name === 'token';
    if ((isNeeded || value !== undefined) && !isGood(value))
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

function parameterText(value: unknown): string {
  if (Array.isArray(value)) return value.join(',');
  const text = String(value);
  // The API accepts decimals without an exponent: 0.0000001, not 1e-7.
  return typeof value === 'number' && text.includes('e-') ? value.toFixed(18).replace(/0+$/, '') : text;
}
