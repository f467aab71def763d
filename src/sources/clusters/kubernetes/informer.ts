import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { RetryBackoff } from '../../http/retries.ts';
import { badAnswer, passingFailure, SourceError, statusOf } from '../../source.ts';
import { type ApiServer, statusFailure } from './api-server.ts';
import type { Reading } from './kind.ts';
import { listed } from './list.ts';
import type { Target } from './target.ts';

export const TIMING = {
  firstPauseMs: 500,
  longestPauseMs: 30_000,
  givesUpAfterMs: 120_000,
  watchSeconds: 290,
  /** A watch without data for this time is opened again. Servers send bookmarks about every minute. */
  silenceMs: 150_000,
  settledMs: 1_000,
  /** The pause between two searches for a kind that the cluster does not know. */
  absentMs: 300_000,
  gatherMs: 50,
};
export type Timing = Readonly<typeof TIMING>;

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
 * Lists and watches one target. The informer of @kubernetes/client-node lists without pages, requests no bookmarks, skips lines
 * that it cannot parse, and ends at every failure except 410.
 */
export class Informer {
  readonly target: Target;
  readonly #server: ApiServer;
  readonly #timing: Timing;
  readonly #changed: () => void;
  #objects = new Map<string, Reading>();
  /** Whether the cluster knows this kind; undefined before the first list. */
  #installed: boolean | undefined;
  #openedAt: number | undefined;
  #version: string | undefined;

  constructor(server: ApiServer, target: Target, timing: Timing, changed: () => void) {
    [this.#server, this.target, this.#timing, this.#changed] = [server, target, timing, changed];
  }

  get absent(): boolean {
    return this.#installed === false;
  }

  readings(): readonly Reading[] {
    return [...this.#objects.values()];
  }

  /** @throws SourceError, also if the cluster no longer knows a kind that it knew */
  async list(signal: AbortSignal): Promise<void> {
    const found = await listed(this.#server, this.target, signal);
    if (found === undefined && this.#installed) throw this.#removed();
    this.#installed = found !== undefined;
    this.#objects = new Map(found?.objects);
    this.#version = found?.resourceVersion;
  }

  /** Watches until the signal aborts. @throws SourceError of any kind but `retry`; a `retry` that lasts too long */
  async watch(signal: AbortSignal): Promise<void> {
    const backoff = new RetryBackoff(this.#timing);
    let expirations = 0;
    while (!signal.aborted) {
      const before = this.#version;
      this.#openedAt = undefined;
      let failure: unknown;
      try {
        await this.#listOrWatch(signal, backoff);
        if (before !== undefined && !this.#settled(before))
          failure = passingFailure(`${this.target.path} ends its watches at once`);
      } catch (error) {
        failure = error;
      }
      if (signal.aborted) return;
      if (before !== undefined && this.#settled(before)) {
        backoff.reset();
        expirations = 0;
      }
      const status = statusOf(failure);
      if (status === 410) {
        this.#version = undefined;
        expirations += 1;
        // One expiry is normal: the list is read again at once.
        failure = expirations === 1 ? undefined : passingFailure(`${this.target.path} answers 410`);
      }
      if (failure === undefined) continue;
      if (status === 404) throw this.#removed();
      if (!(failure instanceof SourceError) || failure.kind !== 'retry') throw failure;
      await backoff.pause(failure, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    }
  }

  async #listOrWatch(signal: AbortSignal, backoff: RetryBackoff): Promise<void> {
    if (this.#version !== undefined) return await this.#watch(this.#version, signal);
    if (this.absent) {
      await sleep(this.#timing.absentMs, undefined, { signal });
      backoff.reset();
    }
    await this.list(signal);
    if (!this.absent) this.#changed();
  }

  #settled(before: string): boolean {
    if (this.#openedAt === undefined) return false;
    return this.#version !== before || performance.now() - this.#openedAt >= this.#timing.settledMs;
  }

  #removed(): SourceError {
    return new SourceError(
      'gone',
      `the API server no longer knows ${this.target.resource}, which it knew before; their clusters do not change`,
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
    const request = { path: target.path, query, right, signal };
    const lines = await this.#server.stream(request, this.#timing.silenceMs);
    this.#openedAt = performance.now();
    for await (const line of lines) {
      const { data: event } = Event.safeParse(line);
      if (event === undefined) throw badAnswer(`${target.path} sends an invalid event`);
      if (event.type === 'ERROR') {
        const { code, details } = event.object;
        const retryAfter = details?.retryAfterSeconds?.toString();
        throw (
          // Without a code, or with a code of success, it is an error too.
          statusFailure(code == null || code < 400 ? 500 : code, retryAfter, target.path, right) ??
          passingFailure(`${target.path} reports an error`)
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
    // Operators update the status of their objects all the time, mostly in parts that Fleetbook does not read.
    if (known === undefined || JSON.stringify(known) !== JSON.stringify(reading)) this.#changed();
  }
}
