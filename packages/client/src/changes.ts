/** Reads the feed of changes: one page, or all changes over as many connections as necessary. */
import type { Change, ChangePage } from './api.ts';
import type { ChangesQuestion } from './documents.ts';
import { EventParser } from './event-stream.ts';
import { problemOf } from './problem.ts';
import { isTransient, type Requests } from './requests.ts';
import { linkedController, nextChunk, sleep, TimeoutError } from './time.ts';

export interface ChangesOptions {
  /** A cursor: the `id` of the last known change, or the `next` of a page. By default the current end of the feed. */
  readonly after?: string | undefined;
  /** `all`: include changes of sold-out machines. `now` by default. */
  readonly available?: 'now' | 'all' | undefined;
  /** Ids of the machines whose changes to yield; all of them by default. Changes of clusters stay. */
  readonly machines?: readonly number[] | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds without data after which the connection counts as lost; 45,000 by default (three heartbeats). */
  readonly silenceMs?: number | undefined;
  /** Receives the error of each lost connection, before the client reconnects. */
  onInterrupted?(error: unknown): void;
}

/** Time for the first data of an event stream. A proxy may buffer the stream. */
const FIRST_DATA_MS = 10_000;
/** Used until the server sends a `retry` field. */
const RECONNECT_MS = 2000;
const MAX_PAUSE_MS = 30_000;
/** Milliseconds between two pages of a client that reads no stream. */
const PAGE_EVERY_MS = 2000;

/** The connection does not deliver event streams: the client reads pages instead. */
class StreamUnavailable extends Error {}

const CLOSED = new Error('The server closed the stream.');

interface FeedItem {
  /** The cursor after this item. */
  readonly next: string;
  readonly change?: Change;
}

/**
 * Yields changes in order, each once, until the loop ends or the signal aborts. Reconnects after each failed connection.
 * Reads a page every two seconds if the connection does not deliver event streams.
 * @throws CursorGone if `after` is too old; FleetbookProblem if the API refuses the request; the signal's reason
 */
export async function* followChanges(
  requests: Requests,
  options: ChangesOptions,
): AsyncGenerator<Change, void, undefined> {
  const { controller, unlink } = linkedController(options.signal);
  const { signal } = controller;
  let useStream = true;
  let failures = 0;
  let reconnectMs = RECONNECT_MS;
  const { available, machines } = options;
  const filter = { available, machines };
  let { after } = options;
  try {
    for (;;) {
      let error: unknown = CLOSED;
      try {
        // The cursor comes first, so changes before the first connection are not lost.
        after ??= (await changePage(requests, {}, { signal })).next;
        const source = useStream
          ? streamChanges(requests, { after, filter }, signal, options.silenceMs ?? 45_000, (ms) => {
              reconnectMs = ms;
            })
          : readPages(requests, { after, filter }, signal);
        for await (const { next, change } of source) {
          failures = 0;
          after = next;
          if (change) yield change;
        }
      } catch (caught) {
        signal.throwIfAborted();
        error = caught;
      }
      if (error instanceof StreamUnavailable) useStream = false;
      else {
        if (!isTransient(error)) throw error;
        options.onInterrupted?.(error);
        failures += 1;
        // Jitter: clients that lost their connections together do not reconnect together.
        const jitteredMs = (reconnectMs / 2) * (1 + Math.random());
        await sleep(Math.max(jitteredMs, requests.pauseMs(failures, error, MAX_PAUSE_MS)), signal);
      }
    }
  } finally {
    unlink();
    controller.abort();
  }
}

/** Reads one page of the feed. */
export async function changePage(
  requests: Requests,
  query: ChangesQuestion,
  options: { readonly signal?: AbortSignal | undefined; readonly deadlineMs?: number | undefined },
): Promise<ChangePage> {
  const { data } = await requests.json<ChangePage>('v1/changes', query, options);
  return data;
}

interface FeedPosition {
  readonly after: string;
  readonly filter: Pick<ChangesOptions, 'available' | 'machines'>;
}

async function* streamChanges(
  requests: Requests,
  { after, filter }: FeedPosition,
  signal: AbortSignal,
  silenceMs: number,
  onRetry: (ms: number) => void,
): AsyncGenerator<FeedItem> {
  const headers = { accept: 'text/event-stream', 'last-event-id': after };
  const body = await requests.request(
    requests.url('v1/changes', filter),
    headers,
    { signal, attempts: 1, opensStream: true },
    openStream,
  );
  if (!body) throw new StreamUnavailable();
  const reader = body.getReader();
  const parser = new EventParser();
  const decoder = new TextDecoder();
  let hasData = false;
  try {
    for (;;) {
      const chunk = await nextChunk(reader, hasData ? silenceMs : Math.min(silenceMs, FIRST_DATA_MS));
      if (chunk === undefined) return;
      hasData = true;
      const events = parser.push(decoder.decode(chunk, { stream: true }));
      if (parser.retryMs !== undefined) onRetry(parser.retryMs);
      for (const { id, data } of events) yield { next: id, change: JSON.parse(data) };
    }
  } catch (error) {
    if (error instanceof TimeoutError && !hasData) throw new StreamUnavailable();
    throw error;
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Returns undefined if the answer is not an event stream. */
async function openStream(response: Response): Promise<ReadableStream<Uint8Array> | undefined> {
  if (!response.ok && response.status !== 406) throw await problemOf(response);
  if (response.headers.get('content-type')?.startsWith('text/event-stream'))
    return response.body ?? undefined;
  response.body?.cancel().catch(() => {});
  return undefined;
}

async function* readPages(
  requests: Requests,
  from: FeedPosition,
  signal: AbortSignal,
): AsyncGenerator<FeedItem> {
  const { filter } = from;
  let { after } = from;
  for (;;) {
    const { changes, next, more } = await changePage(requests, { ...filter, after, limit: 1000 }, { signal });
    for (const change of changes) yield { next: change.id, change };
    yield { next };
    after = next;
    if (!more) await sleep(PAGE_EVERY_MS, signal);
  }
}
