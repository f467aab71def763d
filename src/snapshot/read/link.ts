// The global of this name is a getter, which takes as long as the clock itself. Each hot answer reads it.
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { steadyNow } from '../../domain/clock.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { type CacheKeys, lanesOf } from '../document/keys.ts';
import { CacheCommands, readState } from './cache.ts';

interface CacheSubscriptionEvents {
  onPublished(id: string, version: number): void;
  /** Messages may be lost: memory is compared before its next use. */
  onGap(): void;
  onUnlinked(): void;
  /** The cache names another lineage than the one in use. */
  onLineage(lineage: string): void;
  /** Receives the stamps of the cache, see `loadFreshness`. @param isLinked memory is known to be as new */
  onVerified(stamps: Readonly<Record<string, string>>, isLinked: boolean): void;
}

interface CacheSubscriptionOptions {
  /** Opened for use `reader`, with the fence. */
  readonly commands: RedisClient;
  /** Opened for use `subscriber`. */
  readonly subscriber: Redis;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Milliseconds that a read of the cache may take. */
  readonly deadlineMs?: number;
  readonly pollMs?: number;
  readonly silentAfterMs?: number;
}

/** One slow answer is no outage. */
const MISSED_POLLS_TO_UNLINK = 2;
const RETRY_POLL_MS = 200;
const CHECK_HEARTBEATS_MS = 100;
/** Largest delay of a message behind its revision within a cluster (ms). */
const BETWEEN_NODES_MS = 100;
const SILENT_CHECKS_TO_RESUBSCRIBE = 3;
/** Epochs with a stored `confirmedAt`. Documents of older epochs are as old as their read. */
const EPOCHS_REMEMBERED = 10_000;

/**
 * A reader's connection to the cache. It decides whether memory is current.
 *
 *     down ──subscribed──▶ subscribed ──heartbeat, revision read──▶ linked
 *       ▲                                                            │
 *       └── connection lost, no answer to a poll, or no heartbeat ◀──┘
 *
 * Heartbeats prove that publishers reach the cache, and their messages this reader. While linked, every publication arrives as a
 * message with the revision of its lane, so the next poll detects a lost one. A ping is answered after all earlier messages;
 * in a cluster those of other nodes may be a moment late. A document of an earlier epoch is compared before its next use.
 */
export class CacheSubscription implements AsyncDisposable {
  readonly #redis: RedisClient;
  readonly commands: CacheCommands;
  readonly #subscriber: Redis;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #heartbeats: Heartbeats;
  #keys: CacheKeys | undefined;
  #events: CacheSubscriptionEvents | undefined;
  #subscribedTo: string | undefined;
  readonly #revisions = new Revisions();
  /** Consecutive checks without a heartbeat, or with revisions that no message announced. */
  #silentChecks = 0;
  #linked = false;
  #epoch = 1;
  /** Epoch → when its memory was last equal to the cache, in milliseconds. */
  readonly #confirmedAt = new Map<number, number>();
  #missedPolls = 0;
  #polling: Promise<void> | undefined;

  constructor(options: CacheSubscriptionOptions) {
    this.#redis = options.commands;
    this.#subscriber = options.subscriber;
    this.#logger = options.logger;
    this.#now = options.now ?? steadyNow;
    this.#heartbeats = new Heartbeats(options.silentAfterMs);
    this.commands = new CacheCommands(options.commands, options.logger, this.#now, options.deadlineMs);
    this.#subscriber.on('message', (channel: string, message: string) => {
      // After a reconnect the client subscribes to the channels of former lineages too.
      if (channel === this.#keys?.published) this.#onMessage(message);
      else if (channel === this.#keys?.heartbeats) this.#onHeartbeat(message);
    });
    this.#subscriber.on('ready', () => {
      this.#subscribedTo = undefined;
      void this.#pollAgain();
    });
    this.#redis.on('ready', () => void this.#pollAgain());
    this.#subscriber.on('close', () => this.#unlink('the subscription was cut'));
    this.#timers = [
      setInterval(() => void this.poll(), options.pollMs ?? 1000).unref(),
      setInterval(() => {
        if (this.#linked && this.publisher !== 'reachable') void this.poll();
      }, CHECK_HEARTBEATS_MS).unref(),
    ];
  }

  get lanes(): number {
    return lanesOf(this.#redis);
  }

  follow(keys: CacheKeys, events: CacheSubscriptionEvents): void {
    this.commands.isOff = false;
    this.#keys = keys;
    this.#events = events;
    this.#heartbeats.restart(keys.lanes);
    this.#unlink();
    void this.#pollAgain();
  }

  /** Follows no lineage. Until it follows one, every read of the cache is a miss. */
  leave(): void {
    this.commands.isOff = true;
    this.#keys = undefined;
    this.#events = undefined;
    this.#unlink();
  }

  /**
   * True while messages arrive: memory of the current epoch equals the cache. Each read checks the last heartbeat: a process that was
   * frozen answers requests before its late timers run, and before it has received its messages.
   */
  get linked(): boolean {
    return this.#linked && this.publisher === 'reachable';
  }

  /** True while the cache takes commands. It may still answer too late. */
  get isConnected(): boolean {
    return this.commands.isReady;
  }

  /** Whether publishers reach this cache. Otherwise only Postgres has the current documents. */
  get publisher(): PublisherState {
    return this.#heartbeats.state;
  }

  /** The time of the last heartbeat in milliseconds; before the first heartbeat, the time of the subscription. */
  get lastHeartbeatAt(): number {
    return this.#now() - this.#heartbeats.ageMs;
  }

  /** Grows by each possible loss of messages. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Returns when memory of this epoch was last equal to the cache, in milliseconds; 0 for never. */
  confirmedAt(epoch: number): number {
    return this.#confirmedAt.get(epoch) ?? 0;
  }

  get keys(): CacheKeys | undefined {
    return this.#keys;
  }

  poll(): Promise<void> {
    this.#polling ??= this.#poll().finally(() => {
      this.#polling = undefined;
    });
    return this.#polling;
  }

  /** Polls after an event that a poll under way may have missed. */
  async #pollAgain(): Promise<void> {
    await this.#polling;
    await this.poll();
  }

  async #poll(): Promise<void> {
    const keys = this.#keys;
    if (!keys) return;
    await this.#subscribe(keys);
    const before = this.#revisions.known;
    const at = this.#now();
    const answer = await this.commands.runAlways((redis) => readState(redis, keys));
    if (keys !== this.#keys) return;
    if (!answer) {
      this.#missedPolls += 1;
      if (this.#missedPolls >= MISSED_POLLS_TO_UNLINK) this.#unlink('the cache does not answer');
      else setTimeout(() => void this.poll(), RETRY_POLL_MS).unref();
      return;
    }
    this.#missedPolls = 0;
    const { verified, lineage, revisions } = answer;
    if (lineage !== null && lineage !== keys.lineage) this.#events?.onLineage(lineage);
    const isSubscribed = this.#isSubscribed(keys);
    if (!isSubscribed || this.publisher !== 'reachable') {
      if (isSubscribed) await this.#awaitHeartbeats(keys);
      this.#events?.onVerified(verified, false);
      return;
    }
    await this.#compare(keys, revisions, before);
    if (keys !== this.#keys) return;
    if (this.#linked) this.#confirmedAt.set(this.#epoch, Math.min(at, this.lastHeartbeatAt));
    this.#events?.onVerified(verified, this.#linked);
  }

  /** @param before the revisions that were known before the poll */
  async #compare(keys: CacheKeys, revisions: readonly number[], before: readonly number[]): Promise<void> {
    if (!this.#linked) {
      // The subscription began before the revisions were read: no message is lost unnoticed from here on.
      this.#revisions.raise(revisions);
      this.#linked = true;
      this.#newEpoch();
    } else if (revisions.some((revision, lane) => revision < (before[lane] ?? 0))) {
      // The cache was flushed, or failed over to a replica that was behind.
      this.#revisions.restart(revisions);
      this.#newEpoch();
    } else if (this.#revisions.isBehind(revisions)) {
      await this.#awaitMessages(keys, revisions);
    }
  }

  #isSubscribed(keys: CacheKeys): boolean {
    return this.#subscriber.status === 'ready' && this.#subscribedTo === keys.published;
  }

  async #subscribe(keys: CacheKeys): Promise<void> {
    if (this.#subscriber.status !== 'ready' || this.#isSubscribed(keys)) return;
    try {
      if (this.#subscribedTo) await this.#subscriber.unsubscribe();
      await this.#subscriber.subscribe(keys.published, keys.heartbeats);
      this.#subscribedTo = keys.published;
    } catch (error) {
      this.#resubscribe('the cache refused the subscription', error);
    }
  }

  /** A busy process has not read its messages: they arrive before the answer to the ping. Without a heartbeat it unlinks. */
  async #awaitHeartbeats(keys: CacheKeys): Promise<void> {
    if (this.#linked) {
      await this.#subscriber.ping().catch(() => {});
      if (keys === this.#keys && this.publisher !== 'reachable')
        this.#unlink('no publisher reaches the cache');
    } else if (keys.lanes > 1 && this.publisher === 'silent') {
      this.#countSilentCheck();
    }
  }

  /** A node that has left its cluster, or is cut off from it, answers pings and receives no messages of the other nodes. */
  #countSilentCheck(): void {
    this.#silentChecks += 1;
    if (this.#silentChecks >= SILENT_CHECKS_TO_RESUBSCRIBE)
      this.#resubscribe('the subscription receives no publications', undefined);
  }

  /** Messages arrive on another connection than the revisions, and may be later. */
  async #awaitMessages(keys: CacheKeys, revisions: readonly number[]): Promise<void> {
    try {
      await this.#subscriber.ping();
      if (keys.lanes > 1 && this.#revisions.isBehind(revisions)) await sleep(BETWEEN_NODES_MS);
    } catch (error) {
      this.#resubscribe('the subscription does not answer', error);
      return;
    }
    if (keys !== this.#keys || !this.#linked || !this.#revisions.isBehind(revisions)) return;
    this.#revisions.raise(revisions);
    this.#newEpoch();
    this.#countSilentCheck();
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
    const isNext = this.#revisions.announced(lane, revision);
    this.#silentChecks = 0;
    this.#events?.onPublished(id, Number(version));
    if (this.#linked && !isNext) this.#newEpoch();
  }

  #onHeartbeat(message: string): void {
    const wasReachable = this.#heartbeats.state === 'reachable';
    const [, publisher = '', lane] = message.split(' ');
    this.#heartbeats.received(Number(lane), publisher);
    if (!wasReachable && this.publisher === 'reachable') void this.#pollAgain();
  }

  #newEpoch(): void {
    this.#epoch += 1;
    this.#confirmedAt.delete(this.#epoch - EPOCHS_REMEMBERED);
    this.#events?.onGap();
  }

  #unlink(why?: string): void {
    this.#subscribedTo = this.#subscriber.status === 'ready' ? this.#subscribedTo : undefined;
    this.#revisions.restart([]);
    this.#silentChecks = 0;
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
    this.#redis.disconnect();
    this.#subscriber.disconnect();
  }
}

/** The newest known revision of each lane of the cache. A publication raises the revision of its lane by one. */
class Revisions {
  #known: readonly number[] = [];

  get known(): readonly number[] {
    return this.#known;
  }

  restart(revisions: readonly number[]): void {
    this.#known = revisions;
  }

  /** @param revisions of the cache; messages may have announced later ones */
  raise(revisions: readonly number[]): void {
    this.#known = revisions.map((revision, lane) => Math.max(revision, this.#known[lane] ?? 0));
  }

  /** True if the cache has revisions that no message announced. */
  isBehind(revisions: readonly number[]): boolean {
    return revisions.some((revision, lane) => revision > (this.#known[lane] ?? 0));
  }

  /** Stores an announced revision. @returns false if messages before it were lost */
  announced(lane: number, revision: number): boolean {
    const last = this.#known[lane] ?? 0;
    this.#known = Object.assign([...this.#known], { [lane]: revision });
    // A publication that the cache rejected repeats the last revision, see `announce`.
    return revision === last + 1 || revision === last;
  }
}

const SILENT_AFTER_MS = 1500;

/**
 * - `reachable`: publishers reach every lane of the cache;
 * - `awaited`: no heartbeat has arrived yet, and the first one may still come;
 * - `silent`: no publisher reaches the cache, or the reader and the publishers use two sides of a split cache.
 */
export type PublisherState = 'reachable' | 'awaited' | 'silent';

/** Counts the heartbeats that a reader receives, by lane, on the reader's monotonic clock. */
export class Heartbeats {
  readonly #silentAfterMs: number;
  /** By lane: the time of the last heartbeat that counts. Empty until the first heartbeat. */
  #receivedAt: (number | undefined)[] = [];
  /** The time of the last heartbeat of each lane and publisher, the oldest first. A silence clears it. */
  readonly #recent = new Map<string, number>();
  #since = performance.now();

  /** @param silentAfterMs `Infinity` trusts a cache without heartbeats */
  constructor(silentAfterMs = SILENT_AFTER_MS) {
    this.#silentAfterMs = silentAfterMs;
  }

  restart(lanes: number): void {
    this.#recent.clear();
    this.#receivedAt = Array.from({ length: lanes });
    this.#since = performance.now();
  }

  /**
   * Records a heartbeat. After a silence the first heartbeat of a publisher does not count: the publisher may have sent it before it
   * lost the cache. Before the second one the publisher publishes everything that is dirty.
   */
  received(lane: number, publisher: string): void {
    if (!(lane in this.#receivedAt)) return;
    const now = performance.now();
    for (const [key, at] of this.#recent) {
      if (now - at <= this.#silentAfterMs) break;
      this.#recent.delete(key);
    }
    const key = `${lane} ${publisher}`;
    const isSecond = this.#recent.delete(key);
    this.#recent.set(key, now);
    const last = this.#receivedAt[lane];
    if (isSecond || last === undefined || now - last <= this.#silentAfterMs) this.#receivedAt[lane] = now;
  }

  get state(): PublisherState {
    if (this.#silentAfterMs === Number.POSITIVE_INFINITY) return 'reachable';
    if (this.ageMs > this.#silentAfterMs) return 'silent';
    const isComplete = this.#receivedAt.length > 0 && !this.#receivedAt.includes(undefined);
    return isComplete ? 'reachable' : 'awaited';
  }

  /** Milliseconds since the last heartbeat of the lane that was silent for longest. */
  get ageMs(): number {
    if (this.#silentAfterMs === Number.POSITIVE_INFINITY) return 0;
    let oldest = Number.POSITIVE_INFINITY;
    for (const at of this.#receivedAt) oldest = Math.min(oldest, at ?? this.#since);
    return performance.now() - (oldest === Number.POSITIVE_INFINITY ? this.#since : oldest);
  }
}
