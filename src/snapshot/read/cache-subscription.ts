import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { ReplyError } from 'ioredis';
import type { Logger } from 'pino';
import type { RedisClient } from '../../db/redis.ts';
import { type CacheKeys, type DocumentName, LINEAGE_KEY } from '../document/keys.ts';
import { lanesOf } from '../document/lanes.ts';
import { setIfNewer } from '../publish/fence.ts';
import { Breaker } from './breaker.ts';
import { type PublisherState, Pulses } from './pulses.ts';

/** What a subscription tells its reader. */
export interface CacheSubscriptionEvents {
  /** A newer version of one document was published. */
  onPublished(id: string, version: number): void;
  /** Messages may have been lost: everything in memory has to be compared before it is used. */
  onGap(): void;
  /** No messages arrive from now on. */
  onUnlinked(): void;
  /** The cache names another lineage than the one in use. */
  onLineage(lineage: string): void;
  /**
   * The stamps of freshness that the cache has, see `loadFreshness`.
   * @param isLinked memory is known to be as new
   */
  onVerified(stamps: Readonly<Record<string, string>>, isLinked: boolean): void;
}

export interface CacheSubscriptionOptions {
  /** Opened for use `reader`, with the fence. */
  readonly commands: RedisClient;
  /** Opened for use `subscriber`. */
  readonly subscriber: Redis;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Milliseconds between two looks at the revision. */
  readonly pollMs?: number;
  /** See `Pulses`. */
  readonly silentAfterMs?: number;
}

/** One slow answer is no outage. */
const MISSED_POLLS_TO_UNLINK = 2;
const RETRY_POLL_MS = 200;
/** Milliseconds between two checks whether publishers are still heard. */
const CHECK_PULSES_MS = 100;
/** Within a cluster a message is this much later than the revision that it tells of, at the most. */
const BETWEEN_NODES_MS = 100;
const SILENT_LOOKS_TO_RESUBSCRIBE = 3;
/** Epochs whose `confirmedAt` is kept. What is older counts from when it was read. */
const EPOCHS_REMEMBERED = 10_000;
/** Write-backs at once. More are skipped: making the values takes longer than reading them from Postgres. */
const WRITE_BACKS_AT_MOST = 64;
/** Seconds that a write-back lives, unless the publisher makes it permanent. */
const WRITE_BACK_SECONDS = 60;

/**
 * A reader's connection to the cache, which knows whether memory may be trusted.
 *
 *     down ──subscribed──▶ subscribed ──pulse heard, revision read──▶ linked
 *       ▲                                                              │
 *       └─ connection lost, no answer to a poll, or no publisher heard ◀┘
 *
 * Pulses prove that publishers reach the cache, and that their messages reach this reader (`Publisher.pulse`). While
 * linked, every publication arrives as a message. Each message carries the revision of its lane, so the next poll detects a
 * lost one. The subscription answers a ping after every message that was sent before it; in a cluster
 * messages of other nodes may be a moment late. Memory that was read in an earlier epoch has to be compared before it is
 * used again.
 */
export class CacheSubscription implements AsyncDisposable {
  readonly #commands: RedisClient;
  readonly #subscriber: Redis;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #breaker: Breaker;
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #pulses: Pulses;
  #keys: CacheKeys | undefined;
  #events: CacheSubscriptionEvents | undefined;
  #subscribedTo: string | undefined;
  /** By lane, as last heard of; 0 until then. */
  #revisions: number[] = [];
  /** Consecutive looks without a pulse, or with revisions that no message announced. */
  #silentLooks = 0;
  #linked = false;
  /** The cache is not asked: what it holds is of a lineage that was left. */
  #hasLeft = false;
  #epoch = 1;
  /** Epoch → when its memory was last known to be what the cache holds, in milliseconds. */
  readonly #confirmedAt = new Map<number, number>();
  #missedPolls = 0;
  #writingBack = 0;
  #polling: Promise<void> | undefined;

  constructor(options: CacheSubscriptionOptions) {
    this.#commands = options.commands;
    this.#subscriber = options.subscriber;
    this.#logger = options.logger;
    this.#now = options.now ?? Date.now;
    this.#pulses = new Pulses(options.silentAfterMs);
    this.#breaker = new Breaker({ failuresToOpen: 3, retryAfterMs: 500, now: this.#now });
    this.#subscriber.on('message', (channel: string, message: string) => {
      // After a reconnect the client takes up every channel it ever had, those of a former lineage too.
      if (channel === this.#keys?.published) this.#onMessage(message);
      else if (channel === this.#keys?.pulses) this.#onPulse(message);
    });
    this.#subscriber.on('ready', () => {
      this.#subscribedTo = undefined;
      void this.#pollAnew();
    });
    this.#commands.on('ready', () => void this.#pollAnew());
    this.#subscriber.on('close', () => this.#unlink('the subscription was cut'));
    this.#timers = [
      setInterval(() => void this.poll(), options.pollMs ?? 1000).unref(),
      setInterval(() => this.#checkPulses(), CHECK_PULSES_MS).unref(),
    ];
  }

  /** How many lanes the cache's documents are in. */
  get lanes(): number {
    return lanesOf(this.#commands);
  }

  /** Starts to follow one lineage. */
  follow(keys: CacheKeys, events: CacheSubscriptionEvents): void {
    this.#hasLeft = false;
    this.#keys = keys;
    this.#events = events;
    this.#pulses.restart(keys.lanes);
    this.#unlink();
    void this.#pollAnew();
  }

  /** Follows none: until it follows one, the cache is as good as away. */
  leave(): void {
    this.#hasLeft = true;
    this.#keys = undefined;
    this.#events = undefined;
    this.#unlink();
  }

  /** True while messages arrive: memory of the current epoch is what the cache has. */
  get linked(): boolean {
    return this.#linked;
  }

  /** True while the cache can be asked, which says nothing of whether it answers in time. */
  get isConnected(): boolean {
    return this.#commands.status === 'ready' && !this.#hasLeft;
  }

  /** Whether publishers reach this cache. Unless they are `heard`, only Postgres knows what is true. */
  get publisher(): PublisherState {
    return this.#pulses.state;
  }

  /** When publishers were last heard, in milliseconds; before the first pulse, when it began to listen. */
  get publisherHeardAt(): number {
    return this.#now() - this.#pulses.ageMs;
  }

  /** Rises whenever messages may have been lost. */
  get epoch(): number {
    return this.#epoch;
  }

  /** When memory of this epoch was last known to be what the cache had, in milliseconds; 0 if it never was. */
  confirmedAt(epoch: number): number {
    return this.#confirmedAt.get(epoch) ?? 0;
  }

  /** Of the lineage that is followed; undefined until it is known. */
  get keys(): CacheKeys | undefined {
    return this.#keys;
  }

  /** Runs one command under the circuit breaker. Undefined when the cache does not answer, which is a cache miss. */
  async ask<T>(command: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
    if (!this.isConnected || !this.#breaker.allows()) return undefined;
    return this.#try(command);
  }

  async #try<T>(command: (redis: RedisClient) => Promise<T>): Promise<T | undefined> {
    try {
      const result = await command(this.#commands);
      this.#breaker.succeeded();
      return result;
    } catch (error) {
      // A server that refuses a command, e.g. a write when its memory is full, is not down.
      if (error instanceof ReplyError) this.#breaker.succeeded();
      else this.#breaker.failed();
      this.#logger.debug({ err: error }, 'the cache did not answer');
      return undefined;
    }
  }

  /** Offers what Postgres answered to the cache, fenced and for a short while. A failure is ignored. */
  writeBack(keys: CacheKeys, name: DocumentName, version: number, value: () => Promise<Buffer>): void {
    if (this.#writingBack >= WRITE_BACKS_AT_MOST) return;
    this.#writingBack += 1;
    void this.ask(async (redis) =>
      setIfNewer(redis, keys, name, version, await value(), WRITE_BACK_SECONDS),
    ).finally(() => {
      this.#writingBack -= 1;
    });
  }

  /** Compares the revision now. The timer does it every second. */
  poll(): Promise<void> {
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  /** After something has happened that a poll under way may have missed. */
  async #pollAnew(): Promise<void> {
    await this.#polling;
    await this.poll();
  }

  async #poll(): Promise<void> {
    const keys = this.#keys;
    if (!keys) return;
    await this.#subscribe(keys);
    const before = [...this.#revisions];
    const at = this.#now();
    // Not under the circuit breaker: this finds out that the cache is back.
    const answer = await this.#try(async (redis) => {
      // First: what was published until these times shows in the revisions.
      const verified = await redis.hgetall(keys.verified);
      const [lineage, revisionTexts] = await Promise.all([
        redis.get(LINEAGE_KEY),
        Promise.all(Array.from({ length: keys.lanes }, (_, lane) => redis.get(keys.revision(lane)))),
      ]);
      return { verified, lineage, revisionTexts };
    });
    if (keys !== this.#keys) return;
    if (!answer) {
      this.#missedPolls += 1;
      if (this.#missedPolls >= MISSED_POLLS_TO_UNLINK) this.#unlink('the cache does not answer');
      else setTimeout(() => void this.poll(), RETRY_POLL_MS).unref();
      return;
    }
    this.#missedPolls = 0;
    const { verified, lineage, revisionTexts } = answer;
    if (lineage !== null && lineage !== keys.lineage) this.#events?.onLineage(lineage);
    if (!this.#isSubscribed(keys)) {
      this.#events?.onVerified(verified, false);
      return;
    }
    if (this.publisher !== 'heard') {
      await this.#awaitPulses(keys);
      this.#events?.onVerified(verified, false);
      return;
    }
    const revisions = revisionTexts.map((text) => Number(text ?? 0));
    if (!this.#linked) {
      // The subscription began before the revisions were read: no message is lost unnoticed from here on.
      this.#revisions = revisions.map((revision, lane) => Math.max(revision, this.#revisions[lane] ?? 0));
      this.#linked = true;
      this.#newEpoch();
    } else if (revisions.some((revision, lane) => revision < (before[lane] ?? 0))) {
      // Counting began anew: the cache was flushed, or failed over to a replica that was behind.
      this.#revisions = revisions;
      this.#newEpoch();
    } else if (this.#isBehind(revisions)) {
      await this.#awaitMessages(keys, revisions);
    }
    if (keys !== this.#keys) return;
    if (this.#linked) this.#confirmedAt.set(this.#epoch, Math.min(at, this.publisherHeardAt));
    this.#events?.onVerified(verified, this.#linked);
  }

  #isSubscribed(keys: CacheKeys): boolean {
    return this.#subscriber.status === 'ready' && this.#subscribedTo === keys.published;
  }

  async #subscribe(keys: CacheKeys): Promise<void> {
    if (this.#subscriber.status !== 'ready' || this.#isSubscribed(keys)) return;
    try {
      if (this.#subscribedTo) await this.#subscriber.unsubscribe();
      await this.#subscriber.subscribe(keys.published, keys.pulses);
      this.#subscribedTo = keys.published;
    } catch (error) {
      this.#resubscribe('the cache did not take the subscription', error);
    }
  }

  #checkPulses(): void {
    if (this.#linked && this.publisher !== 'heard') void this.poll();
  }

  /** Pulses may have arrived while this process was busy: the ping is answered after them. Without any it unlinks. */
  async #awaitPulses(keys: CacheKeys): Promise<void> {
    if (this.#linked) {
      await this.#subscriber.ping().catch(() => {});
      if (keys === this.#keys && this.publisher !== 'heard') this.#unlink('no publisher reaches the cache');
    } else if (keys.lanes > 1 && this.publisher === 'silent') {
      this.#countSilentLook();
    }
  }

  /** A node that has left its cluster, or is cut off from it, answers pings and receives no messages of the other nodes. */
  #countSilentLook(): void {
    this.#silentLooks += 1;
    if (this.#silentLooks >= SILENT_LOOKS_TO_RESUBSCRIBE)
      this.#resubscribe('the subscription hears nothing of what is published', undefined);
  }

  #isBehind(revisions: readonly number[]): boolean {
    return revisions.some((revision, lane) => revision > (this.#revisions[lane] ?? 0));
  }

  /** The messages may still be on their way: they come on another connection than the revisions. */
  async #awaitMessages(keys: CacheKeys, revisions: readonly number[]): Promise<void> {
    try {
      await this.#subscriber.ping();
      if (keys.lanes > 1 && this.#isBehind(revisions)) await sleep(BETWEEN_NODES_MS);
    } catch (error) {
      this.#resubscribe('the subscription is silent', error);
      return;
    }
    if (keys !== this.#keys || !this.#linked || !this.#isBehind(revisions)) return;
    this.#revisions = revisions.map((revision, lane) => Math.max(revision, this.#revisions[lane] ?? 0));
    this.#newEpoch();
    this.#countSilentLook();
  }

  /** Replaces a connection that looks alive and is not. */
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
    const lane = this.#keys?.laneOf(id) ?? 0;
    const last = this.#revisions[lane] ?? 0;
    // The last number again: of what the cache refused, see `announce`.
    const gap = this.#linked && revision !== last + 1 && revision !== last;
    this.#revisions[lane] = revision;
    this.#silentLooks = 0;
    this.#events?.onPublished(id, Number(version));
    if (gap) this.#newEpoch();
  }

  #onPulse(message: string): void {
    const wasHeard = this.#pulses.state === 'heard';
    const [, publisher = '', lane] = message.split(' ');
    this.#pulses.heard(Number(lane), publisher);
    if (!wasHeard && this.publisher === 'heard') void this.#pollAnew();
  }

  #newEpoch(): void {
    this.#epoch += 1;
    this.#confirmedAt.delete(this.#epoch - EPOCHS_REMEMBERED);
    this.#events?.onGap();
  }

  /** @param why for the log; absent where the subscription is only made anew */
  #unlink(why?: string): void {
    this.#subscribedTo = this.#subscriber.status === 'ready' ? this.#subscribedTo : undefined;
    this.#revisions = [];
    this.#silentLooks = 0;
    if (!this.#linked) return;
    this.#linked = false;
    this.#events?.onUnlinked();
    if (why !== undefined)
      this.#logger.warn({ why }, 'the link to the cache is down; memory is checked against PostgreSQL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#linked = false;
    this.#keys = undefined;
    this.#commands.disconnect();
    this.#subscriber.disconnect();
  }
}
