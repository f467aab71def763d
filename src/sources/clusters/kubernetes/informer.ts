import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { RetryBackoff, type RetryBackoffOptions } from '../../http/retries.ts';
import { SourceError } from '../../source.ts';
import { type ApiServer, Expired, NotFound, statusFailure } from './api-server.ts';
import type { Reading } from './kind.ts';
import { listed } from './list.ts';
import type { Target } from './target.ts';

export interface Timing extends RetryBackoffOptions {
  /** For each page of a list, and for the beginning of a watch. */
  readonly answerMs: number;
  /** For how long a watch is asked for; the server ends it then. */
  readonly watchSeconds: number;
  /**
   * A watch that is silent for so long is opened again. Servers send bookmarks about every minute; for one that sends
   * none, this is a needless request now and then.
   */
  readonly silenceMs: number;
  /** A watch that was open for so long counts as working. */
  readonly settledMs: number;
  /** How often a kind that the cluster does not know is looked for again. */
  readonly absentMs: number;
  /** Changes within this time are yielded together. */
  readonly gatherMs: number;
}

export const TIMING: Timing = {
  firstPauseMs: 500,
  longestPauseMs: 30_000,
  givesUpAfterMs: 120_000,
  answerMs: 30_000,
  watchSeconds: 290,
  silenceMs: 150_000,
  settledMs: 1_000,
  absentMs: 300_000,
  gatherMs: 50,
};

/** Loose: the kind reads the rest of it. */
const Versioned = z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string().min(1) }) });

const Event = z.discriminatedUnion('type', [
  z.object({ type: z.enum(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']), object: Versioned }),
  z.object({
    type: z.literal('ERROR'),
    object: z.object({
      code: z.number().nullish(),
      details: z.object({ retryAfterSeconds: z.number().nullish() }).nullish(),
    }),
  }),
]);

/**
 * Lists and watches one target. The informer of @kubernetes/client-node is not used: it lists without pages, asks for no
 * bookmarks, skips lines that it cannot parse, and ends at every failure but 410.
 */
export class Informer {
  readonly target: Target;
  readonly #server: ApiServer;
  readonly #timing: Timing;
  readonly #changed: () => void;
  #objects = new Map<string, Reading>();
  /** Whether the cluster knows this kind of object; undefined before the first list. */
  #installed: boolean | undefined;
  /** When the latest watch was accepted; undefined before that. */
  #openedAt: number | undefined;
  /** The resource version at which a watch begins; undefined where a list has to come first. */
  #version: string | undefined;

  constructor(server: ApiServer, target: Target, timing: Timing, changed: () => void) {
    [this.#server, this.target, this.#timing, this.#changed] = [server, target, timing, changed];
  }

  /** Whether the cluster does not know this kind of object. */
  get absent(): boolean {
    return this.#installed === false;
  }

  readings(): readonly Reading[] {
    return [...this.#objects.values()];
  }

  /**
   * Reads everything anew.
   * @throws SourceError, also where the cluster knew this kind and no longer does; the signal's reason when that aborts
   */
  async list(signal: AbortSignal): Promise<void> {
    const found = await listed(this.#server, this.target, this.#timing.answerMs, signal);
    if (found === undefined && this.#installed) throw this.#removed();
    this.#installed = found !== undefined;
    this.#objects = new Map(found?.objects);
    this.#version = found?.resourceVersion;
  }

  /**
   * Watches until the signal aborts, each time from the latest resource version.
   * @throws SourceError of any kind but `retry`, or one that has lasted too long
   */
  async keep(signal: AbortSignal): Promise<void> {
    const backoff = new RetryBackoff(this.#timing);
    let expirations = 0;
    while (!signal.aborted) {
      const before = this.#version;
      this.#openedAt = undefined;
      let failure: unknown;
      try {
        await this.#once(signal, backoff);
        if (before !== undefined && !this.#settled(before))
          failure = new SourceError('retry', `${this.target.path} ends its watches at once`);
      } catch (error) {
        failure = error;
      }
      if (signal.aborted) return;
      if (before !== undefined && this.#settled(before)) {
        backoff.reset();
        expirations = 0;
      }
      if (failure instanceof Expired) {
        this.#version = undefined;
        expirations += 1;
        // One is normal: the list is read again at once.
        failure = expirations === 1 ? undefined : new SourceError('retry', failure.message);
      }
      if (failure === undefined) continue;
      if (failure instanceof NotFound) throw this.#removed();
      if (!(failure instanceof SourceError) || failure.kind !== 'retry') throw failure;
      await this.#pause(backoff, failure, signal);
    }
  }

  /** One list, where that is needed, or one watch. */
  async #once(signal: AbortSignal, backoff: RetryBackoff): Promise<void> {
    if (this.#version !== undefined) return await this.#watch(this.#version, signal);
    if (this.absent) {
      await sleep(this.#timing.absentMs, undefined, { signal });
      backoff.reset();
    }
    await this.list(signal);
    if (!this.absent) this.#changed();
  }

  async #pause(backoff: RetryBackoff, failure: SourceError, signal: AbortSignal): Promise<void> {
    await backoff.pause(failure, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }

  /** Whether a watch worked: it brought an event, or was open for a while. */
  #settled(before: string): boolean {
    if (this.#openedAt === undefined) return false;
    return this.#version !== before || performance.now() - this.#openedAt >= this.#timing.settledMs;
  }

  #removed(): SourceError {
    return new SourceError(
      'gone',
      `the API server no longer knows ${this.target.resource}, which it did before; their clusters stay as they were`,
    );
  }

  async #watch(from: string, signal: AbortSignal): Promise<void> {
    const { target } = this;
    const right = `watch ${target.resource}`;
    const query = {
      ...target.query,
      watch: '1',
      resourceVersion: from,
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(this.#timing.watchSeconds),
    };
    const lines = await this.#server.stream(
      { path: target.path, query, right, signal },
      { openMs: this.#timing.answerMs, silenceMs: this.#timing.silenceMs },
    );
    this.#openedAt = performance.now();
    for await (const line of lines) {
      const { data: event } = Event.safeParse(line);
      if (event === undefined) {
        throw new SourceError('invalid', `${target.path} sends an event that is none of its watch's`);
      }
      if (event.type === 'ERROR') {
        const { code, details } = event.object;
        const retryAfter = details?.retryAfterSeconds?.toString();
        throw (
          // Without a code, or with one of success, it is an error all the same.
          statusFailure(code == null || code < 400 ? 500 : code, retryAfter, target.path, right) ??
          new SourceError('retry', `${target.path} reports an error`)
        );
      }
      this.#apply(event.type, event.object);
      this.#version = event.object.metadata.resourceVersion;
    }
  }

  #apply(type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK', object: unknown): void {
    if (type === 'BOOKMARK') return;
    const identity = this.target.identity(object);
    if (type === 'DELETED') {
      if (this.#objects.delete(identity)) this.#changed();
      return;
    }
    const reading = this.target.read(object);
    const known = this.#objects.get(identity);
    this.#objects.set(identity, reading);
    // Operators update the status of their objects all the time, mostly in parts that are not read.
    if (known === undefined || JSON.stringify(known) !== JSON.stringify(reading)) this.#changed();
  }
}
