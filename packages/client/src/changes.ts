/** The feed of changes as an iterator that does not end with its connections. */
import type { Change, ChangePage } from './documents.ts';
import { EventParser } from './event-stream.ts';
import { problemOf } from './problem.ts';
import { isPassing, type Requests } from './requests.ts';
import { linked, nextChunk, sleep, TimedOut } from './time.ts';

export interface ChangesOptions {
  /** The `id` of the last change that is known, or a `next`; unless given, from now on. */
  readonly after?: string | undefined;
  /** `all`: changes of machines that are sold out as well. `now` unless given. */
  readonly available?: 'now' | 'all' | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without a byte after which a connection counts as dead; 45,000 unless given, thrice the heartbeat. */
  readonly silenceMs?: number | undefined;
  /** Hears why the connection was lost, each time before it is made again. */
  onInterrupted?(error: unknown): void;
}

export interface ChangePageQuery extends Pick<ChangesOptions, 'after' | 'available'> {
  readonly limit?: number;
  /** Seconds. */
  readonly wait?: number;
}

/** Milliseconds until an event stream must begin. A proxy may hold a stream back. */
const BEGINS_WITHIN_MS = 10_000;
/** Unless the server says otherwise. */
const RECONNECT_MS = 2000;
const LONGEST_PAUSE_MS = 30_000;
/** Seconds that a long poll waits. */
const WAIT = 25;

/** There is no event stream to be had on this way. */
class NoStream extends Error {}

const ENDED = new Error('The server has ended the stream.');

/** What one connection tells. */
interface Told {
  /** The cursor after the last reported change. */
  readonly next: string;
  readonly change?: Change;
}

/**
 * Changes in their order, each once, until it is left or the signal fires. Connections that fail are made again,
 * without end. Where events cannot be streamed it asks again and again, by long polls.
 * @throws CursorGone when `after` is too old · FleetbookProblem when the token does not do · the signal's reason
 */
export async function* followChanges(
  requests: Requests,
  options: ChangesOptions,
): AsyncGenerator<Change, void, undefined> {
  const { life, unlink } = linked(options.signal);
  const { signal } = life;
  let isStreaming = true;
  let failures = 0;
  let reconnectMs = RECONNECT_MS;
  const { available } = options;
  let { after } = options;
  try {
    for (;;) {
      let error: unknown = ENDED;
      try {
        // From here on, whatever happens between this answer and the first connection.
        after ??= (await changePage(requests, {}, { signal })).next;
        const source = isStreaming
          ? streamed(requests, { after, available }, signal, options.silenceMs ?? 45_000, (ms) => {
              reconnectMs = ms;
            })
          : polled(requests, { after, available }, signal);
        for await (const { next, change } of source) {
          failures = 0;
          after = next;
          if (change) yield change;
        }
      } catch (caught) {
        signal.throwIfAborted();
        error = caught;
      }
      if (error instanceof NoStream) isStreaming = false;
      else {
        if (!isPassing(error)) throw error;
        options.onInterrupted?.(error);
        failures += 1;
        // Clients whose connections were cut together do not come back together.
        const spreadMs = (reconnectMs / 2) * (1 + Math.random());
        await sleep(Math.max(spreadMs, requests.pause(failures, error, LONGEST_PAUSE_MS)), signal);
      }
    }
  } finally {
    unlink();
    life.abort();
  }
}

/** One page of the feed, as `GET /v1/changes` gives it. */
export async function changePage(
  requests: Requests,
  query: ChangePageQuery,
  options: { readonly signal?: AbortSignal | undefined; readonly deadlineMs?: number | undefined },
): Promise<ChangePage> {
  const waitMs = (query.wait ?? 0) * 1000;
  const attemptTimeoutMs = requests.attemptTimeoutMs + waitMs;
  const { data } = await requests.json<ChangePage>('v1/changes', query, {
    ...options,
    attemptTimeoutMs,
    ...(waitMs > 0 && options.deadlineMs === undefined && { deadlineMs: 3 * attemptTimeoutMs }),
  });
  return data;
}

/** Where a connection begins, and what it is about. */
interface Place {
  readonly after: string;
  readonly available: ChangesOptions['available'];
}

async function* streamed(
  requests: Requests,
  { after, available }: Place,
  signal: AbortSignal,
  silenceMs: number,
  onRetry: (ms: number) => void,
): AsyncGenerator<Told> {
  const headers = { accept: 'text/event-stream', 'last-event-id': after };
  const body = await requests.ask(
    requests.url('v1/changes', { available }),
    headers,
    { signal, attempts: 1, staysOpen: true },
    openStream,
  );
  if (!body) throw new NoStream();
  const reader = body.getReader();
  const parser = new EventParser();
  const decoder = new TextDecoder();
  let hasBegun = false;
  try {
    for (;;) {
      const chunk = await nextChunk(reader, hasBegun ? silenceMs : Math.min(silenceMs, BEGINS_WITHIN_MS));
      if (chunk === undefined) return;
      hasBegun = true;
      const events = parser.push(decoder.decode(chunk, { stream: true }));
      if (parser.retryMs !== undefined) onRetry(parser.retryMs);
      for (const { id, data } of events) yield { next: id, change: JSON.parse(data) };
    }
  } catch (error) {
    if (error instanceof TimedOut && !hasBegun) throw new NoStream();
    throw error;
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Undefined where the answer is none. */
async function openStream(response: Response): Promise<ReadableStream<Uint8Array> | undefined> {
  if (!response.ok && response.status !== 406) throw await problemOf(response);
  if (response.headers.get('content-type')?.startsWith('text/event-stream'))
    return response.body ?? undefined;
  response.body?.cancel().catch(() => {});
  return undefined;
}

async function* polled(requests: Requests, from: Place, signal: AbortSignal): AsyncGenerator<Told> {
  const { available } = from;
  let { after } = from;
  for (;;) {
    const asked = performance.now();
    const { changes, next, more } = await changePage(
      requests,
      { after, available, limit: 1000, wait: WAIT },
      { signal },
    );
    for (const change of changes) yield { next: change.id, change };
    yield { next };
    after = next;
    // A server that does not wait must not be asked all the time.
    if (!more) await sleep(Math.max(0, Math.min(1000, 1000 - (performance.now() - asked))), signal);
  }
}
