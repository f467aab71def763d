import { performance } from 'node:perf_hooks';
import type { RunRequest, RunRequests } from '../../domain/run.ts';
import type { NotedRequest, Requests } from '../run-requests.ts';
import { SourceError } from '../source.ts';

/** Stored requests: the first ones, and of the others the failed and the slowest ones. */
const FIRST = 100;
const FAILED = 20;
const SLOWEST = 20;

const LONGEST_ADDRESS = 200;
const LONGEST_ERROR = 200;

/** Parameters with the position of a page. Their values are stored if they are numbers. */
const PAGE_PARAMETER = /^(page|per_page|page_size|limit|offset|\$skip|\$top|skip|start)$/;

/** Records the requests of one run: a bounded number of them, and sums of all. */
export class RequestLog implements Requests {
  readonly #first: LoggedRequest[] = [];
  readonly #failed: LoggedRequest[] = [];
  #slowest: LoggedRequest[] = [];
  readonly #open = new Set<LoggedRequest>();
  #total = 0;
  #sums = { attempts: 0, failed: 0, bytes: 0, ms: 0 };

  begin(): LoggedRequest {
    this.#total += 1;
    const request = new LoggedRequest(this.#total, (ended) => this.#ended(ended));
    this.#open.add(request);
    if (this.#first.length < FIRST) this.#first.push(request);
    return request;
  }

  #ended(request: LoggedRequest): void {
    this.#open.delete(request);
    const { n, attempts, bytes, ms, error } = request.record;
    const { attempts: before, failed, bytes: read, ms: took } = this.#sums;
    this.#sums = {
      attempts: before + attempts,
      failed: failed + (error === null ? 0 : 1),
      bytes: read + bytes,
      ms: took + ms,
    };
    if (n <= FIRST) return;
    if (error !== null && this.#failed.length < FAILED) this.#failed.push(request);
    else
      this.#slowest = [...this.#slowest, request]
        .sort((one, other) => other.record.ms - one.record.ms)
        .slice(0, SLOWEST);
  }

  /** Ends the open requests at the end of the run. Returns undefined for a run without a request. */
  summary(): RunRequests | undefined {
    if (this.#total === 0) return undefined;
    for (const request of this.#open)
      request.end(new SourceError('retry', 'the run ended before the answer'));
    const kept = [...this.#first, ...this.#failed, ...this.#slowest]
      .map(({ record }) => record)
      .sort((one, other) => one.n - other.n);
    return { total: this.#total, ...this.#sums, kept };
  }
}

class LoggedRequest implements NotedRequest {
  readonly #n: number;
  readonly #began = performance.now();
  readonly #onEnd: (request: LoggedRequest) => void;
  #address = '';
  #status: number | null = null;
  #bytes = 0;
  #attempts = 0;
  #ended: Pick<RunRequest, 'ms' | 'error'> | undefined;

  constructor(n: number, onEnd: (request: LoggedRequest) => void) {
    this.#n = n;
    this.#onEnd = onEnd;
  }

  attempt(): void {
    this.#attempts += 1;
    this.#status = null;
    this.#bytes = 0;
  }

  sentTo(url: URL): void {
    this.#address = loggedAddress(url);
  }

  answered(status: number): void {
    this.#status = status;
  }

  async *counted(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    for await (const chunk of body) {
      this.#bytes += chunk.byteLength;
      yield chunk;
    }
  }

  async *endingWith(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    try {
      yield* body;
    } catch (error) {
      this.end(error);
      throw error;
    } finally {
      this.end();
    }
  }

  end(error?: unknown): void {
    if (this.#ended !== undefined) return;
    this.#ended = {
      ms: Math.round(performance.now() - this.#began),
      error: error === undefined ? null : messageOf(error, this.#status),
    };
    this.#onEnd(this);
  }

  get record(): RunRequest {
    const { ms = 0, error = null } = this.#ended ?? {};
    return {
      n: this.#n,
      address: this.#address,
      status: this.#status,
      bytes: this.#bytes,
      ms,
      attempts: this.#attempts,
      error,
    };
  }
}

/** Returns the message of a SourceError; another message may contain a secret. */
function messageOf(error: unknown, status: number | null): string {
  if (error instanceof SourceError) return error.message.slice(0, LONGEST_ERROR);
  return status === null ? 'it was aborted before the answer' : `the answer had the status ${status}`;
}

/** Returns origin and path with page numbers. `…` replaces other parameters, which may contain a key. */
export function loggedAddress(url: URL): string {
  const all = [...url.searchParams];
  const pages = all.filter(([name, value]) => PAGE_PARAMETER.test(name) && /^\d{1,9}$/.test(value));
  const query = [
    ...pages.map(([name, value]) => `${name}=${value}`),
    ...(pages.length < all.length ? ['…'] : []),
  ].join('&');
  return (url.origin + url.pathname).slice(0, LONGEST_ADDRESS) + (query === '' ? '' : `?${query}`);
}
