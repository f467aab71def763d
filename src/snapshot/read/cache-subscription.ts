import { type Redis, ReplyError } from 'ioredis';
import type { Logger } from 'pino';
import { type CacheKeys, type DocumentName, LINEAGE_KEY } from '../document/keys.ts';
import { setIfNewer } from '../publish/fence.ts';
import { Breaker } from './breaker.ts';

/** What a cache link tells its reader. */
export interface CacheLinkEvents {
  /** A newer version of one document was published. */
  onPublished(id: string, version: number): void;
  /** Messages may have been lost: nothing that is in memory can be trusted unseen. */
  onGap(): void;
  /** No messages arrive from now on. */
  onUnlinked(): void;
  /** The cache names another lineage than the one in use. */
  onLineage(lineage: string): void;
  /** See `loadVerified`. */
  onVerified(stamps: Readonly<Record<string, string>>): void;
}

export interface CacheLinkOptions {
  /** Opened for use `reader`, with the fence. */
  readonly commands: Redis;
  /** Opened for use `subscriber`. */
  readonly subscriber: Redis;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Milliseconds between two looks at the revision. */
  readonly pollMs?: number;
}

/** One slow answer is no outage. */
const MISSED_POLLS_TO_UNLINK = 2;
const RETRY_POLL_MS = 200;
/** What was read in an older epoch than so many ago counts from when it was read. */
const EPOCHS_REMEMBERED = 10_000;
/** Values on their way to the cache at once: making them takes longer than reading them from Postgres. */
const WRITE_BACKS_AT_MOST = 64;
/** Seconds that a write-back lives, unless the publisher makes it permanent. */
const WRITE_BACK_SECONDS = 60;

/**
 * A reader's connection to the cache, and the knowledge whether memory may be trusted.
 *
 *     down ──subscribed──▶ subscribed ──revision read──▶ linked
 *       ▲                                                  │
 *       └────── connection lost, or no answer to a poll ◀──┘
 *
 * While linked, every publication arrives as a message, and a lost one shows within a poll, since each carries the
 * number of the revision: the subscription's answer to a ping comes after every message that was sent before it.
 * Memory read in an earlier epoch has to be compared before it is used again.
 */
export class CacheLink implements AsyncDisposable {
  readonly #commands: Redis;
  readonly #subscriber: Redis;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #breaker: Breaker;
  readonly #timer: NodeJS.Timeout;
  #keys: CacheKeys | undefined;
  #events: CacheLinkEvents | undefined;
  #subscribedTo: string | undefined;
  #revision: number | undefined;
  #linked = false;
  #epoch = 1;
  /** Epoch → when its memory was last known to be what the cache holds, in milliseconds. */
  readonly #confirmedAt = new Map<number, number>();
  #missedPolls = 0;
  #writingBack = 0;
  #polling: Promise<void> | undefined;

  constructor(options: CacheLinkOptions) {
    this.#commands = options.commands;
    this.#subscriber = options.subscriber;
    this.#logger = options.logger;
    this.#now = options.now ?? Date.now;
    this.#breaker = new Breaker({ failuresToOpen: 3, retryAfterMs: 500, now: this.#now });
    this.#subscriber.on('message', (channel: string, message: string) => {
      // After a reconnect the client takes up every channel it ever had, those of a former lineage too.
      if (channel === this.#keys?.published) this.#onMessage(message);
    });
    this.#subscriber.on('ready', () => {
      this.#subscribedTo = undefined;
      void this.poll();
    });
    this.#commands.on('ready', () => void this.poll());
    this.#subscriber.on('close', () => this.#unlink('the subscription was cut'));
    this.#timer = setInterval(() => void this.poll(), options.pollMs ?? 1000);
    this.#timer.unref();
  }

  /** Starts to follow one lineage. */
  follow(keys: CacheKeys, events: CacheLinkEvents): void {
    this.#keys = keys;
    this.#events = events;
    this.#unlink();
    void this.poll();
  }

  /** True while messages arrive: what memory holds of the current epoch is what the cache holds. */
  get linked(): boolean {
    return this.#linked;
  }

  /** Rises whenever messages may have been lost. */
  get epoch(): number {
    return this.#epoch;
  }

  /** When memory of this epoch was last known to be what the cache held, in milliseconds; 0 if it never was. */
  confirmedAt(epoch: number): number {
    return this.#confirmedAt.get(epoch) ?? 0;
  }

  /** One command under the breaker. Undefined when the cache does not answer: to a reader that is a miss. */
  async ask<T>(command: (redis: Redis) => Promise<T>): Promise<T | undefined> {
    if (this.#commands.status !== 'ready' || !this.#breaker.allows()) return undefined;
    return this.#try(command);
  }

  async #try<T>(command: (redis: Redis) => Promise<T>): Promise<T | undefined> {
    try {
      const result = await command(this.#commands);
      this.#breaker.succeeded();
      return result;
    } catch (error) {
      // A server that says no, e.g. to a write when its memory is full, is there all the same.
      if (error instanceof ReplyError) this.#breaker.succeeded();
      else this.#breaker.failed();
      this.#logger.debug({ err: error }, 'the cache did not answer');
      return undefined;
    }
  }

  /** Offers what Postgres answered to the cache, fenced and for a short while; failing is no matter. */
  writeBack(keys: CacheKeys, name: DocumentName, version: number, value: () => Promise<Buffer>): void {
    if (this.#writingBack >= WRITE_BACKS_AT_MOST) return;
    this.#writingBack += 1;
    void this.ask(async (redis) =>
      setIfNewer(redis, keys, name, version, await value(), WRITE_BACK_SECONDS),
    ).finally(() => {
      this.#writingBack -= 1;
    });
  }

  /** Looks at the revision now; the timer does it every second. */
  poll(): Promise<void> {
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  async #poll(): Promise<void> {
    const keys = this.#keys;
    if (!keys) return;
    await this.#subscribe(keys);
    const before = this.#revision;
    const at = this.#now();
    // Not under the breaker: this is what finds out that the cache is back.
    const answer = await this.#try((redis) =>
      Promise.all([redis.get(LINEAGE_KEY), redis.get(keys.revision), redis.hgetall(keys.verified)]),
    );
    if (keys !== this.#keys) return;
    if (!answer) {
      this.#missedPolls += 1;
      if (this.#missedPolls >= MISSED_POLLS_TO_UNLINK) this.#unlink('the cache does not answer');
      else setTimeout(() => void this.poll(), RETRY_POLL_MS).unref();
      return;
    }
    this.#missedPolls = 0;
    const [lineage, revisionText, verified] = answer;
    if (lineage !== null && lineage !== keys.lineage) this.#events?.onLineage(lineage);
    this.#events?.onVerified(verified);
    if (!this.#isSubscribed(keys)) return;
    const revision = Number(revisionText ?? 0);
    if (!this.#linked) {
      // The subscription stood before the revision was read: from here on nothing is missed unnoticed.
      this.#revision = Math.max(revision, this.#revision ?? 0);
      this.#linked = true;
      this.#newEpoch();
    } else if (before !== undefined && revision < before) {
      // Counting began anew: the cache was flushed, or failed over to a copy that had not heard everything.
      this.#revision = revision;
      this.#newEpoch();
    } else if (this.#revision !== undefined && revision > this.#revision) {
      await this.#awaitMessages(keys, revision);
    }
    if (this.#linked) this.#confirmedAt.set(this.#epoch, at);
  }

  #isSubscribed(keys: CacheKeys): boolean {
    return this.#subscriber.status === 'ready' && this.#subscribedTo === keys.published;
  }

  async #subscribe(keys: CacheKeys): Promise<void> {
    if (this.#subscriber.status !== 'ready' || this.#isSubscribed(keys)) return;
    try {
      if (this.#subscribedTo) await this.#subscriber.unsubscribe(this.#subscribedTo);
      await this.#subscriber.subscribe(keys.published);
      this.#subscribedTo = keys.published;
    } catch (error) {
      this.#resubscribe('the cache did not take the subscription', error);
    }
  }

  /** Messages come on another connection than revisions: they may be on their way. */
  async #awaitMessages(keys: CacheKeys, revision: number): Promise<void> {
    try {
      await this.#subscriber.ping();
    } catch (error) {
      this.#resubscribe('the subscription is silent', error);
      return;
    }
    if (keys !== this.#keys || !this.#linked || this.#revision === undefined) return;
    if (this.#revision >= revision) return;
    this.#revision = revision;
    this.#newEpoch();
  }

  /** For a connection that looks alive and is not: nothing is believed of it from now on, and a new one is made. */
  #resubscribe(why: string, error: unknown): void {
    this.#logger.debug({ err: error }, why);
    this.#unlink(why);
    this.#subscribedTo = undefined;
    this.#subscriber.disconnect(true);
  }

  #onMessage(message: string): void {
    const [revisionText, id, version] = message.split(' ');
    const revision = Number(revisionText);
    if (id === undefined || !Number.isInteger(revision)) return;
    const gap = this.#linked && this.#revision !== undefined && revision !== this.#revision + 1;
    this.#revision = revision;
    this.#events?.onPublished(id, Number(version));
    if (gap) this.#newEpoch();
  }

  #newEpoch(): void {
    this.#epoch += 1;
    this.#confirmedAt.delete(this.#epoch - EPOCHS_REMEMBERED);
    this.#events?.onGap();
  }

  /** @param why told to operators; nothing is where the link is only made anew */
  #unlink(why?: string): void {
    this.#subscribedTo = this.#subscriber.status === 'ready' ? this.#subscribedTo : undefined;
    this.#revision = undefined;
    if (!this.#linked) return;
    this.#linked = false;
    this.#events?.onUnlinked();
    if (why !== undefined)
      this.#logger.warn({ why }, 'the link to the cache is down; memory is checked against PostgreSQL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#linked = false;
    this.#keys = undefined;
    this.#commands.disconnect();
    this.#subscriber.disconnect();
  }
}
