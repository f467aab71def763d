// The global of this name is a getter, which takes as long as the clock itself. Each hot answer reads it.
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { ReplyError } from 'ioredis';
import type { Logger } from 'pino';
import { steadyNow } from '../../domain/clock.ts';
import { isCluster, type RedisClient } from '../../redis/redis.ts';
import { type CacheKeys, LINEAGE_KEY } from '../document/keys.ts';
import { CacheCommands } from './cache.ts';

interface LinkEvents {
  onPublished(id: string, version: number): void;
  /** Entries were lost: memory is compared before its next use. */
  onGap(): void;
  onUnlinked(): void;
  /** The cache names another lineage than the one in use. */
  onLineage(lineage: string): void;
  /**
   * Receives stamps of the cache, see `loadFreshness`. Everything that they cover was published before, so memory of the epoch has it
   * or knows that it lacks it. The first call of an epoch has all stamps.
   */
  onStamps(stamps: readonly (readonly [source: string, stamp: string])[]): void;
}

interface CacheLinkOptions {
  /** Opened for use `reader`, with the fence. */
  readonly commands: RedisClient;
  /** Opened for use `stream`. */
  readonly stream: RedisClient;
  readonly logger: Logger;
  readonly now?: () => number;
  /** Milliseconds that a read of the cache may take. */
  readonly deadlineMs?: number;
  readonly blockMs?: number;
  readonly confirmBothEveryMs?: number;
  /** `Infinity` trusts a cache without heartbeats. */
  readonly silentAfterMs?: number;
}

/** Longest wait (ms) of one read of the stream. */
const BLOCK_MS = 1000;
/** A reply with as many entries may not reach the end of the stream. */
const ENTRIES_AT_ONCE = 500;
/**
 * A reader is linked for this time (ms) after a heartbeat. Workers send one every 400 ms. It counts from before its command, so it
 * is up to 800 ms old when it arrives, and 1200 ms before the next one: two may be lost.
 */
const SILENT_AFTER_MS = 2000;
/**
 * Longest time (ms) that the connection for documents is idle: servers close it later, often after five minutes. While all answers
 * come from memory, nothing else uses it.
 */
const CONFIRM_BOTH_EVERY_MS = 60_000;
const RETRY_MS = 200;
const SILENT_JOINS_TO_RECONNECT = 3;
/** Epochs with a stored `confirmedAt`. Documents of older epochs are as old as their read. */
const EPOCHS_REMEMBERED = 10_000;

/** An entry of the stream. */
interface Entry {
  readonly id: string;
  readonly mark: string;
  /** The mark of the entry before it; '' for the first entry of a stream. */
  readonly before: string;
  readonly what: string;
  readonly value: string;
}

/** The end of a stream without entries. No entry follows it: the stream may have been deleted more than once. */
const NOTHING: Entry = { id: '0-0', mark: '', before: '', what: '', value: '' };

const isSame = (a: Entry, b: Entry): boolean => a.id === b.id && a.mark === b.mark && a.before === b.before;
const follows = (entry: Entry, position: Entry): boolean =>
  entry.before !== '' && entry.before === position.mark;

export type LinkState = 'away' | 'joining' | 'following' | 'linked';

/**
 * Reads the stream of the lineage, and decides whether memory and cache are current.
 *
 *     away ──connected──▶ joining ──end of the stream known──▶ following ──heartbeat──▶ linked
 *      ▲                     ▲                                    │  ▲                    │
 *      │                     │                                    │  └─── no heartbeat ───┤
 *      │                     └──────── a gap, or no entry ────────┴───────────────────────┤
 *      └─────────── a connection is closed, or the stream cannot be read ◀────────────────┘
 *
 * It reads the stream also while the connection for documents is closed, and again 200 ms after a failed read. A linked reader that
 * joins because no entry came stays linked.
 *
 * While linked, every publication arrives as an entry. Each entry names the one before it, so a lost one is a gap. The next position
 * begins a new epoch. A document of an earlier epoch is compared before its next use. Decision 101 has the table of states.
 */
export class CacheLink implements AsyncDisposable {
  readonly commands: CacheCommands;
  readonly #redis: RedisClient;
  readonly #stream: RedisClient;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #blockMs: number;
  readonly #silentAfterMs: number;
  readonly #confirmBothEveryMs: number;
  #keys: CacheKeys | undefined;
  #events: LinkEvents | undefined;
  /** The loop that reads the stream now. Another lineage or connection has another one. */
  #loop: symbol | undefined;
  /** The state of the connection for the stream. */
  #state: Exclude<LinkState, 'linked'> = 'away';
  /** True after a failed read of the stream, until it was read. */
  #isUnreadable = false;
  /** The last entry that was read; undefined before the first join, and after a gap. */
  #position: Entry | undefined;
  /** True once a heartbeat was found over both connections, until a connection breaks, heartbeats end, or an epoch begins. */
  #isConfirmed = false;
  /** By `performance.now()`: the last time at which a worker reached the cache, as far as this reader can know. */
  #workerReachedAt = performance.now();
  /** By `performance.now()`: the start of the last command whose reply had every entry. Later entries are younger. */
  #completeAt = performance.now();
  /** The last heartbeat since the last complete reply. It counts once a reply is complete again. */
  #newHeartbeat: Entry | undefined;
  /** By `performance.now()`: the last check whether both connections reach one server. */
  #checkedBothAt = Number.NEGATIVE_INFINITY;
  #silentJoins = 0;
  /** Counts what ends a link. */
  #breaks = 0;
  #epoch = 1;
  /** Epoch → when its memory was last equal to the cache, in milliseconds. */
  readonly #confirmedAt = new Map<number, number>();

  constructor(options: CacheLinkOptions) {
    this.#redis = options.commands;
    this.#stream = options.stream;
    this.#logger = options.logger;
    this.#now = options.now ?? steadyNow;
    this.#blockMs = options.blockMs ?? BLOCK_MS;
    this.#silentAfterMs = options.silentAfterMs ?? SILENT_AFTER_MS;
    this.#confirmBothEveryMs = options.confirmBothEveryMs ?? CONFIRM_BOTH_EVERY_MS;
    this.commands = new CacheCommands(options.commands, options.logger, this.#now, options.deadlineMs);
    this.#stream.on('ready', () => this.#start());
    this.#stream.on('close', () => this.#end('the connection for the stream was closed'));
    this.#redis.on('close', () => this.#unlink('the connection to the cache was closed'));
  }

  get #needsNoHeartbeat(): boolean {
    return this.#silentAfterMs === Number.POSITIVE_INFINITY;
  }

  follow(keys: CacheKeys, events: LinkEvents): void {
    this.commands.isOff = false;
    this.#begin(keys, events);
  }

  /** Follows no lineage. Until it follows one, every read of the cache is a miss. */
  leave(): void {
    this.commands.isOff = true;
    this.#begin(undefined, undefined);
  }

  #begin(keys: CacheKeys | undefined, events: LinkEvents | undefined): void {
    const isReading = this.#loop !== undefined;
    this.#end();
    this.#keys = keys;
    this.#events = events;
    this.#position = undefined;
    this.#workerReachedAt = performance.now();
    // A read that waits for the former stream holds the connection.
    if (isReading) this.#stream.disconnect(true);
    else this.#start();
  }

  /**
   * True while memory of the current epoch equals the cache. Each read checks the time of the last heartbeat: a process that was stopped
   * answers requests before its late timers run, and before it has read its entries. The monotonic clock does not run while the machine
   * is suspended, see docs/reliability.md.
   */
  get linked(): boolean {
    return this.#isConfirmed && performance.now() - this.#workerReachedAt <= this.#silentAfterMs;
  }

  get state(): LinkState {
    if (this.linked) return 'linked';
    return this.#isUnreadable || this.#redis.status !== 'ready' ? 'away' : this.#state;
  }

  /** When a worker last reached the cache, in milliseconds; before the first heartbeat, when the reader began to follow the lineage. */
  get lastHeartbeatAt(): number {
    return this.#now() - (performance.now() - this.#workerReachedAt);
  }

  /** Grows by each possible loss of entries. */
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

  #start(): void {
    if (!this.#keys || this.#stream.status !== 'ready') return;
    this.#loop = Symbol('the loop that reads the stream');
    void this.#read(this.#keys, this.#loop);
  }

  #end(why?: string): void {
    this.#loop = undefined;
    this.#state = 'away';
    this.#isUnreadable = false;
    this.#unlink(why);
  }

  async #read(keys: CacheKeys, loop: symbol): Promise<void> {
    while (loop === this.#loop) {
      try {
        await this.#join(keys, loop);
        while (loop === this.#loop && (await this.#next(keys, loop)));
      } catch (error) {
        if (loop !== this.#loop) return;
        const level = this.#isUnreadable ? 'debug' : 'warn';
        this.#logger[level](
          { err: error },
          'the stream of the cache cannot be read; memory is checked against PostgreSQL',
        );
        this.#isUnreadable = true;
        this.#unlink();
        await sleep(RETRY_MS, undefined, { ref: false });
      }
    }
  }

  /** Goes on from the position if the stream still has it, or what follows it: nothing was missed. Else begins at its end. */
  async #join(keys: CacheKeys, loop: symbol): Promise<void> {
    this.#state = 'joining';
    const sentAt = performance.now();
    void this.#checkLineage(keys, loop);
    const position = this.#position ?? NOTHING;
    const { next, end, stamps } = await readAround(this.#stream, keys, position);
    if (loop !== this.#loop) return;
    this.#state = 'following';
    // Heartbeats between a position and the end are older than this command.
    if (!next || !follows(next, position)) {
      if (!this.#position || !isSame(end, position)) {
        this.#position = end;
        this.#newEpoch();
      }
      this.#completeAt = sentAt;
      this.#newHeartbeat = undefined;
      this.#events?.onStamps(stamps);
      if (this.#needsNoHeartbeat) this.#confirm(sentAt);
    }
    this.#checkSilence();
    this.#countSilentJoin();
  }

  /** It may be on another node of a cluster, which may be away. */
  async #checkLineage(keys: CacheKeys, loop: symbol): Promise<void> {
    const lineage = await this.#stream.get(LINEAGE_KEY).catch(() => null);
    if (loop === this.#loop && lineage !== null && lineage !== keys.lineage) this.#events?.onLineage(lineage);
  }

  /** A node that has left its cluster answers, and has no new entries. */
  #countSilentJoin(): void {
    this.#silentJoins = this.linked ? 0 : this.#silentJoins + 1;
    if (!isCluster(this.#stream) || this.#silentJoins < SILENT_JOINS_TO_RECONNECT) return;
    this.#silentJoins = 0;
    this.#stream.disconnect(true);
  }

  /** Waits for entries. @returns false if the reader has to join again: after a gap, or without an entry */
  async #next(keys: CacheKeys, loop: symbol): Promise<boolean> {
    const sentAt = performance.now();
    const entries = await readBehind(this.#stream, keys, this.#position ?? NOTHING, this.#blockMs);
    if (loop !== this.#loop) return false;
    this.#isUnreadable = false;
    for (const entry of entries) {
      if (!this.#position || !follows(entry, this.#position)) {
        // The new epoch begins with the next position: what is read until then may lack what is appended before it.
        this.#position = undefined;
        this.#unlink();
        return false;
      }
      this.#position = entry;
      this.#onEntry(entry);
      // Another lineage may be followed now, and the rest is not about it.
      if (loop !== this.#loop) return false;
    }
    if (entries.length < ENTRIES_AT_ONCE) {
      if (this.#needsNoHeartbeat) this.#confirm(this.#completeAt);
      else if (this.#newHeartbeat) this.#onHeartbeat(keys, this.#newHeartbeat, this.#completeAt);
      this.#newHeartbeat = undefined;
      this.#completeAt = sentAt;
    }
    this.#checkSilence();
    return entries.length > 0;
  }

  #onEntry(entry: Entry): void {
    const { what, value } = entry;
    switch (what) {
      case 'heartbeat':
        this.#newHeartbeat = entry;
        break;
      case 'stamps':
        this.#events?.onStamps(parseStamps(value));
        break;
      case 'lineage':
        this.#events?.onLineage(value);
        break;
      default:
        if (/^\d{1,15}$/.test(value)) this.#events?.onPublished(what, Number(value));
    }
  }

  /** @param at by `performance.now()`: the heartbeat is no older */
  #onHeartbeat(keys: CacheKeys, heartbeat: Entry, at: number): void {
    this.#silentJoins = 0;
    if (this.#isConfirmed) this.#confirm(at);
    if (!this.#isConfirmed || performance.now() - this.#checkedBothAt >= this.#confirmBothEveryMs)
      void this.#confirmBoth(keys, heartbeat, at);
  }

  /** Confirms once documents are read from the server of the stream: after a failover one connection may lead to the former master. */
  async #confirmBoth(keys: CacheKeys, { id, mark }: Entry, at: number): Promise<void> {
    const breaks = this.#breaks;
    this.#checkedBothAt = performance.now();
    // Without a deadline: a late reply proves as much, and the heartbeat grows old.
    const found = await this.#redis.xrange(keys.stream, id, id).catch(() => undefined);
    if (!found || breaks !== this.#breaks) return;
    if (found.map(entryOf).some((entry) => entry.mark === mark)) this.#confirm(at);
    else if (this.#isConfirmed) {
      this.#unlink('the connection for documents leads to another server than the stream');
      // Entries of the stream were not about the documents that it has read there. The reader joins, since an epoch begins with all stamps.
      this.#position = undefined;
      this.#newEpoch();
    }
  }

  #confirm(at: number): void {
    this.#isConfirmed = true;
    this.#workerReachedAt = Math.max(this.#workerReachedAt, at);
    this.#confirmedAt.set(this.#epoch, this.lastHeartbeatAt);
  }

  #checkSilence(): void {
    if (this.#isConfirmed && !this.linked) this.#unlink('no heartbeat of a worker arrives');
  }

  #newEpoch(): void {
    this.#breaks += 1;
    this.#isConfirmed = false;
    this.#epoch += 1;
    this.#confirmedAt.delete(this.#epoch - EPOCHS_REMEMBERED);
    this.#events?.onGap();
  }

  #unlink(why?: string): void {
    this.#breaks += 1;
    if (!this.#isConfirmed) return;
    this.#isConfirmed = false;
    this.#events?.onUnlinked();
    if (why !== undefined)
      this.#logger.warn({ why }, 'the link to the cache is down; memory is checked against PostgreSQL');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#keys = undefined;
    this.#events = undefined;
    this.#end();
    this.#redis.disconnect();
    this.#stream.disconnect();
  }
}

type RawEntry = [id: string, fields: string[]];

const entryOf = ([id, fields]: RawEntry): Entry => ({
  id,
  mark: fields[1] ?? '',
  before: fields[3] ?? '',
  what: fields[5] ?? '',
  value: fields[7] ?? '',
});

/**
 * Returns the entry behind the position, the last entry, and all stamps at that point of the stream. No transaction: a full cache
 * refuses its parts.
 * @throws if the cache does not answer, or the key is no stream
 */
async function readAround(stream: RedisClient, keys: CacheKeys, position: Entry) {
  const readEnd = () => stream.xrevrange(keys.stream, '+', '-', 'COUNT', 1);
  for (;;) {
    // Sent together, and run in this order.
    const [nexts, ends, stamps, endsNow] = await Promise.all([
      stream.xrange(keys.stream, `(${position.id}`, '+', 'COUNT', 1),
      readEnd(),
      // A hash of another type has no stamps. A worker replaces it.
      stream
        .hgetall(keys.stamps)
        .catch((error: unknown) => (error instanceof ReplyError ? {} : Promise.reject(error))),
      readEnd(),
    ]);
    const [[next], [end], [endNow]] = [nexts, ends, endsNow].map((each) => each.map(entryOf)) as [
      Entry[],
      Entry[],
      Entry[],
    ];
    if (isSame(end ?? NOTHING, endNow ?? NOTHING))
      return { next, end: end ?? NOTHING, stamps: Object.entries(stamps) };
  }
}

async function readBehind(
  stream: RedisClient,
  keys: CacheKeys,
  { id }: Entry,
  blockMs: number,
): Promise<Entry[]> {
  const reply = await stream.xread('COUNT', ENTRIES_AT_ONCE, 'BLOCK', blockMs, 'STREAMS', keys.stream, id);
  return (reply?.[0]?.[1] ?? []).map(entryOf);
}

/** Returns no stamps for damaged text. */
function parseStamps(text: string): (readonly [string, string])[] {
  try {
    const stamps: unknown = JSON.parse(text);
    return Array.isArray(stamps) ? stamps.flatMap((pair) => (isPair(pair) ? [pair] : [])) : [];
  } catch {
    return [];
  }
}

const isPair = (pair: unknown): pair is readonly [string, string] =>
  Array.isArray(pair) && pair.length === 2 && pair.every((each) => typeof each === 'string');
