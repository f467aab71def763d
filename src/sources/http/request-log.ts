import { performance } from 'node:perf_hooks';
import type { RunRequest, RunRequests } from '../../domain/run.ts';
import { type NotedRequest, passingFailure, type Requests, SourceError } from '../source.ts';

/** Stored requests: the first ones, and of the others the failed and the slowest ones. */
const FIRST = 100;
const FAILED = 20;
const SLOWEST = 20;

const LONGEST_ADDRESS = 200;
const LONGEST_ERROR = 200;

/** Parameters with the position of a page. Their values are stored if they are numbers. */
const PAGE_PARAMETER = /^(page|per_page|page_size|limit|offset|\$skip|\$top|skip|start)$/;

export class RequestLog implements Requests {
  readonly #first: RunRequest[] = [];
  readonly #failed: RunRequest[] = [];
  #slowest: RunRequest[] = [];
  readonly #open = new Set<LoggedRequest>();
  readonly #sums = { total: 0, attempts: 0, failed: 0, bytes: 0, ms: 0 };

  begin(): LoggedRequest {
    this.#sums.total += 1;
    const request = new LoggedRequest(this.#sums.total, () => this.#ended(request));
    this.#open.add(request);
    if (this.#first.length < FIRST) this.#first.push(request.record);
    return request;
  }

  #ended(request: LoggedRequest): void {
    this.#open.delete(request);
    const { record } = request;
    const isFailed = record.error !== null;
    for (const field of ['attempts', 'bytes', 'ms'] as const) this.#sums[field] += record[field];
    if (isFailed) this.#sums.failed += 1;
    if (record.n <= FIRST) return;
    if (isFailed && this.#failed.length < FAILED) this.#failed.push(record);
    else this.#slowest = [...this.#slowest, record].sort((a, b) => b.ms - a.ms).slice(0, SLOWEST);
  }

  summary(): RunRequests | undefined {
    if (this.#sums.total === 0) return undefined;
    for (const request of this.#open) request.end(passingFailure('the run ended before the answer'));
    const kept = [...this.#first, ...this.#failed, ...this.#slowest].sort((a, b) => a.n - b.n);
    return { ...this.#sums, kept };
  }
}

class LoggedRequest implements NotedRequest {
  readonly record: { -readonly [Field in keyof RunRequest]: RunRequest[Field] };
  readonly #began = performance.now();
  readonly #onEnd: () => void;
  #isEnded = false;

  constructor(n: number, onEnd: () => void) {
    this.record = { n, address: '', status: null, bytes: 0, ms: 0, attempts: 0, error: null };
    this.#onEnd = onEnd;
  }

  attempt(): void {
    this.record.attempts += 1;
    this.record.status = null;
    this.record.bytes = 0;
  }

  sentTo(url: URL): void {
    this.record.address = loggedAddress(url);
  }

  answered(status: number): void {
    this.record.status = status;
  }

  async *counted(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    for await (const chunk of body) {
      this.record.bytes += chunk.byteLength;
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
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.record.ms = Math.round(performance.now() - this.#began);
    this.record.error = error === undefined ? null : messageOf(error, this.record.status);
    this.#onEnd();
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
