/** Watches sources, each in one worker at a time. See docs/decisions/0012. */
import type { Logger } from 'pino';
import type { ClustersConfig } from '../src/app/run-source.ts';
import type { Leases } from '../src/db/sync/leases.ts';
import { withTimeout } from '../src/domain/timeout.ts';

/** Interval of claims. It bounds the time until another worker takes over. */
const CLAIM_EVERY_MS = 2000;
/** After this time the connection of the leases counts as lost. */
const CLAIM_WITHIN_MS = 4000;
/** Time for an old watch to end before a new one starts. The fence protects against a late one. */
const END_WITHIN_MS = 5000;

export interface WatchHostOptions {
  readonly sources: readonly ClustersConfig[];
  readonly leases: Leases;
  disabled(): Promise<ReadonlySet<string>>;
  /** Watches a source until the signal aborts. It never rejects. */
  watch(source: ClustersConfig, signal: AbortSignal): Promise<void>;
  readonly logger: Logger;
  /** Waits, at most until the signal aborts. It never rejects. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

interface Watch {
  readonly end: AbortController;
  readonly ended: Promise<void>;
}

export class WatchHost {
  readonly #options: WatchHostOptions;
  readonly #watches = new Map<string, Watch>();
  readonly #stop = new AbortController();
  #claiming: Promise<void> = Promise.resolve();
  #disabled: ReadonlySet<string> = new Set();

  constructor(options: WatchHostOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#options.sources.length > 0) this.#claiming = this.#claimRepeatedly();
  }

  async #claimRepeatedly(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#claim();
      await this.#options.pause(CLAIM_EVERY_MS, signal);
    }
  }

  async #claim(): Promise<void> {
    const { sources, leases, disabled, logger } = this.#options;
    const names = sources.map(({ id }) => leaseOf(id));
    let leased: ReadonlySet<string> = new Set();
    try {
      // A failed query of disabled sources must not end the watches.
      const disabledNow = disabled().catch(() => this.#disabled);
      const claimed = Promise.all([leases.claim(names), disabledNow]).then((now) => {
        [leased, this.#disabled] = now;
      });
      if (!(await withTimeout(CLAIM_WITHIN_MS, claimed))) {
        void leases.release();
        throw new Error(`PostgreSQL did not confirm the leases within ${CLAIM_WITHIN_MS} ms`);
      }
    } catch (error) {
      if (!this.#stop.signal.aborted)
        logger.warn({ err: error }, 'the leases of watches are lost; the worker claims them again');
    }
    if (this.#stop.signal.aborted) return;
    for (const source of sources) {
      const watch = this.#watches.get(source.id);
      const isWatched = watch !== undefined && !watch.end.signal.aborted;
      if (this.#disabled.has(source.id)) {
        if (isWatched) logger.info({ sourceId: source.id }, 'the watch ends: the source was disabled');
        watch?.end.abort();
      } else if (!leased.has(leaseOf(source.id))) watch?.end.abort();
      else if (!isWatched) this.#start(source, watch?.ended);
    }
  }

  #start(source: ClustersConfig, before: Promise<void> | undefined): void {
    const { watch, logger } = this.#options;
    const end = new AbortController();
    const { signal } = end;
    const run = async () => {
      if (before !== undefined) await withTimeout(END_WITHIN_MS, before);
      logger.info({ sourceId: source.id }, 'watching');
      await watch(source, signal);
    };
    this.#watches.set(source.id, { end, ended: run() });
  }

  /** Ends the watches, then the leases. Returns false if a watch did not end within `ms` milliseconds. */
  async stop(ms: number): Promise<boolean> {
    this.#stop.abort();
    for (const { end } of this.#watches.values()) end.abort();
    const watches = [...this.#watches.values()].map(({ ended }) => ended);
    const inTime = await withTimeout(ms, Promise.all([this.#claiming, ...watches]));
    if (!inTime) this.#options.logger.warn('watches did not end in time; the worker stops without them');
    await this.#options.leases.release();
    return inTime;
  }
}

const leaseOf = (sourceId: string): string => `watch ${sourceId}`;
