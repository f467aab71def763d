/** Watches the sources that can be watched, each in one worker at a time. See docs/decisions/0012. */
import type { Logger } from 'pino';
import type { ClustersConfig } from '../src/app/run-source.ts';
import type { Leases } from '../src/db/sync/leases.ts';
import { withTimeout } from '../src/lib/timeout.ts';

/** How soon another worker takes over, and how often a lease is confirmed. */
const CLAIM_EVERY_MS = 2000;
/** Then the session that holds the leases leads nowhere. */
const CLAIM_WITHIN_MS = 4000;
/** A watch that was told to end gets this long before it is begun anew beside it; the fence keeps the two apart. */
const END_WITHIN_MS = 5000;

export interface WatchHostOptions {
  readonly sources: readonly ClustersConfig[];
  readonly leases: Leases;
  /** Ids of the sources that an operator has disabled: they are not watched until they are enabled. */
  disabled(): Promise<ReadonlySet<string>>;
  /** Watches a source until the signal; never fails. */
  watch(source: ClustersConfig, signal: AbortSignal): Promise<void>;
  readonly logger: Logger;
  /** Waits so many milliseconds; the signal ends that early, without a failure. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

interface Watch {
  readonly end: AbortController;
  readonly ended: Promise<void>;
}

/** Holds leases as long as it lives, and a watch for each. */
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
    if (this.#options.sources.length > 0) this.#claiming = this.#claimAgainAndAgain();
  }

  async #claimAgainAndAgain(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#claim();
      await this.#options.pause(CLAIM_EVERY_MS, signal);
    }
  }

  async #claim(): Promise<void> {
    const { sources, leases, disabled, logger } = this.#options;
    const names = sources.map(({ id }) => leaseOf(id));
    let held: ReadonlySet<string> = new Set();
    try {
      // What is disabled is not asked for under the leases: a failure there alone must not end the watches.
      const asked = disabled().catch(() => this.#disabled);
      const claimed = Promise.all([leases.claim(names), asked]).then((now) => {
        [held, this.#disabled] = now;
      });
      if (!(await withTimeout(CLAIM_WITHIN_MS, claimed))) {
        void leases.release();
        throw new Error(`Postgres did not confirm them within ${CLAIM_WITHIN_MS} ms`);
      }
    } catch (error) {
      if (!this.#stop.signal.aborted)
        logger.warn({ err: error }, 'the leases of watches are lost; they are claimed again');
    }
    if (this.#stop.signal.aborted) return;
    for (const source of sources) {
      const watch = this.#watches.get(source.id);
      const isWatched = watch !== undefined && !watch.end.signal.aborted;
      if (this.#disabled.has(source.id)) {
        if (isWatched) logger.info({ sourceId: source.id }, 'no longer watched: the source was disabled');
        watch?.end.abort();
      } else if (!held.has(leaseOf(source.id))) watch?.end.abort();
      else if (!isWatched) this.#begin(source, watch?.ended);
    }
  }

  #begin(source: ClustersConfig, before: Promise<void> | undefined): void {
    const { watch, logger } = this.#options;
    const end = new AbortController();
    const { signal } = end;
    const begun = async () => {
      if (before !== undefined) await withTimeout(END_WITHIN_MS, before);
      logger.info({ sourceId: source.id }, 'watching');
      await watch(source, signal);
    };
    this.#watches.set(source.id, { end, ended: begun() });
  }

  /** Ends the watches, and then the leases. @returns false when a watch did not end within so many milliseconds */
  async stop(ms: number): Promise<boolean> {
    this.#stop.abort();
    for (const { end } of this.#watches.values()) end.abort();
    const watches = [...this.#watches.values()].map(({ ended }) => ended);
    const inTime = await withTimeout(ms, Promise.all([this.#claiming, ...watches]));
    if (!inTime) this.#options.logger.warn('watches did not end in time and are left');
    await this.#options.leases.release();
    return inTime;
  }
}

const leaseOf = (sourceId: string): string => `watch ${sourceId}`;
