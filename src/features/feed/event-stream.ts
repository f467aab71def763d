/** Server-sent events of changes. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { steadyNow } from '../../domain/clock.ts';
import type { TokenCheck } from '../../http/lasting-answers.ts';
import type { Batch, Follower } from './follow-changes.ts';
import { type Change, type Cursor, encodeCursor, type FeedScope } from './read-changes.ts';

const RETRY_MS = 2000;
/** Milliseconds within which a stream sends a change or a heartbeat. */
const HEARTBEAT_MS = 15_000;
/** Most bytes that wait for one client. Clients share them: bytes for many clients are in memory once. */
const WAITING_AT_MOST = 1_000_000;

function framesOf(changes: readonly Change[]): Buffer {
  return Buffer.from(
    changes.map(({ id, type, json }) => `id: ${id}\nevent: ${type}\ndata: ${json}\n\n`).join(''),
  );
}

/** Returns the first frame of a stream. An id without data is no event, but a client that reconnects names it. */
export function firstFrame(start: Cursor): string {
  return `retry: ${RETRY_MS}\nid: ${encodeCursor(start)}\n\n`;
}

/** The last heartbeat. All clients at the end of the feed get the same one. */
let beat: { readonly id: string; readonly frame: Buffer } | undefined;

function heartbeat(at: Cursor): Buffer {
  const id = encodeCursor(at);
  if (beat?.id !== id) beat = { id, frame: Buffer.from(`:\nid: ${id}\n\n`) };
  return beat.frame;
}

export interface EventStreamOptions {
  readonly response: ServerResponse;
  /** Ends with the response or its connection. */
  readonly life: AbortSignal;
  readonly scope: FeedScope;
  readonly start: Cursor;
  readonly token: TokenCheck;
  readonly idleTimeoutMs: number;
  onCut(): void;
}

/** One client's stream. It ends with its token, and it is cut off if the client is too slow. The caller ends it with its life. */
export class EventStream implements Follower {
  readonly scope: FeedScope;
  position: number;
  #feed: Cursor['feed'];
  readonly #options: EventStreamOptions;
  readonly #unwatch: () => void;
  #isOver = false;
  /** The offset of its spans of `HEARTBEAT_MS`, so that streams do not send their heartbeats all at once. */
  readonly #phase = Math.random() * HEARTBEAT_MS;
  /** The span of the last frame. */
  #sentIn: number;
  /** Since when bytes wait for the client; undefined if none wait. */
  #stuckSince: number | undefined;

  constructor(options: EventStreamOptions) {
    const now = steadyNow();
    this.#options = options;
    this.scope = options.scope;
    this.position = options.start.position;
    this.#feed = options.start.feed;
    this.#unwatch = options.token.watch(() => this.end());
    this.#sentIn = this.#spanOf(now);
    if (options.response.writableNeedDrain) this.#stuckSince = now;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Waits until the client has read all frames. Returns false if the stream is over. */
  async ready(): Promise<boolean> {
    const { response, life, token } = this.#options;
    if (!this.#isOver && response.writableNeedDrain)
      await once(response, 'drain', { signal: life }).catch(() => {});
    await token.check();
    return !this.#isOver;
  }

  deliver(batch: Batch, next: Cursor): void {
    this.#feed = next.feed;
    this.#write(batch.encoded(framesOf));
  }

  end(): void {
    if (this.#isOver) return;
    this.#over();
    this.#options.response.end();
  }

  /** Reads the response only while bytes wait: there may be thousands of idle streams. */
  tick(now: number): void {
    const { response, token, idleTimeoutMs } = this.#options;
    token.checkAgain(now);
    if (this.#isOver) return;
    if (this.#stuckSince !== undefined && !response.writableNeedDrain) this.#stuckSince = undefined;
    if (this.#stuckSince !== undefined && now - this.#stuckSince > idleTimeoutMs) this.#cut();
    else if (this.#spanOf(now) !== this.#sentIn)
      this.#write(heartbeat({ feed: this.#feed, position: this.position }), now);
  }

  #spanOf(now: number): number {
    return Math.floor((now + this.#phase) / HEARTBEAT_MS);
  }

  #write(frames: Buffer, now = steadyNow()): void {
    if (this.#isOver) return;
    const { response } = this.#options;
    if (!response.write(frames)) this.#stuckSince ??= now;
    this.#sentIn = this.#spanOf(now);
    if (response.writableLength > WAITING_AT_MOST) this.#cut();
  }

  #cut(): void {
    this.#over();
    this.#options.onCut();
    this.#options.response.destroy();
  }

  #over(): void {
    this.#isOver = true;
    this.#unwatch();
  }
}
