import { Unavailable } from '../../document/answer.ts';

/** Too many callers wait. The call did not run. */
export class SemaphoreFull extends Unavailable {}

/** The call got no turn before its deadline, although other calls ended. It did not run. */
export class NoTurn extends Unavailable {}

export interface SemaphoreLimits {
  readonly atOnce: number;
  readonly waitingAtMost: number;
  readonly deadlineMs: number;
}

interface Share {
  readonly organizationId: number | undefined;
  running: number;
  readonly waiting: Set<() => void>;
}

/**
 * Runs a fixed number of calls at once. Some wait for their turn, the rest are rejected. The calls of one organization take at
 * most half of the places, and organizations take turns, so that the calls of one do not delay those of another for long. At
 * most as many of its calls wait as there is room for further ones, so that several busy organizations leave room for another.
 */
export class Semaphore {
  readonly #limits: SemaphoreLimits;
  /** By organization, undefined for calls of the process itself. The one that got a place longest ago is the first. */
  readonly #shares = new Map<number | undefined, Share>();
  #running = 0;
  #waiting = 0;
  #ended = 0;

  constructor(limits: SemaphoreLimits) {
    this.#limits = limits;
  }

  /**
   * Runs `call` in its turn. The deadline covers waiting and running. A call that outlives it stays counted until it ends, so
   * that a hung Postgres does not get more and more reads.
   * @throws SemaphoreFull; NoTurn or Unavailable after the deadline
   */
  async run<T>(call: () => Promise<T>, organizationId?: number): Promise<T> {
    const { promise: expired, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => reject(new Unavailable('PostgreSQL did not answer in time')),
      this.#limits.deadlineMs,
    );
    try {
      await this.#enter(expired, organizationId);
      const work = call().finally(() => this.#leave(organizationId));
      return await Promise.race([work, expired]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #enter(expired: Promise<never>, organizationId: number | undefined): Promise<void> {
    const share = this.#shares.get(organizationId) ?? { organizationId, running: 0, waiting: new Set() };
    this.#shares.set(organizationId, share);
    const { atOnce, waitingAtMost } = this.#limits;
    if (this.#running < atOnce && share.running < mostOf(atOnce, organizationId)) {
      this.#running += 1;
      share.running += 1;
      return;
    }
    if (this.#waiting >= waitingAtMost || this.#hasItsPart(share)) {
      this.#drop(share);
      throw new SemaphoreFull('too many reads wait for PostgreSQL');
    }
    const { promise: turn, resolve } = Promise.withResolvers<void>();
    share.waiting.add(resolve);
    this.#waiting += 1;
    const ended = this.#ended;
    try {
      await Promise.race([turn, expired]);
    } catch (error) {
      // Its turn came at the moment of its deadline: the next call gets it.
      if (!share.waiting.delete(resolve)) this.#leave(organizationId);
      else {
        this.#waiting -= 1;
        this.#drop(share);
      }
      throw this.#ended > ended ? new NoTurn('too many reads wait for PostgreSQL') : error;
    }
  }

  #hasItsPart({ organizationId, waiting }: Share): boolean {
    return organizationId !== undefined && waiting.size >= this.#limits.waitingAtMost - this.#waiting;
  }

  #leave(organizationId: number | undefined): void {
    const share = this.#shares.get(organizationId);
    if (!share) throw new Error('unreachable: a running call has a share');
    this.#ended += 1;
    this.#running -= 1;
    share.running -= 1;
    this.#drop(share);
    this.#startNext();
  }

  /** Starts a call of the organization with the fewest running calls; among equals, of the one that waits longest. */
  #startNext(): void {
    let next: Share | undefined;
    for (const [organizationId, share] of this.#shares) {
      const isFull = share.running >= mostOf(this.#limits.atOnce, organizationId);
      if (share.waiting.size > 0 && !isFull && (!next || share.running < next.running)) next = share;
    }
    const [start] = next?.waiting ?? [];
    if (!next || !start) return;
    next.waiting.delete(start);
    next.running += 1;
    this.#waiting -= 1;
    this.#running += 1;
    // Its next call waits behind those of equals.
    this.#shares.delete(next.organizationId);
    this.#shares.set(next.organizationId, next);
    start();
  }

  #drop(share: Share): void {
    if (share.running === 0 && share.waiting.size === 0) this.#shares.delete(share.organizationId);
  }
}

const mostOf = (limit: number, organizationId: number | undefined): number =>
  organizationId === undefined ? limit : Math.max(1, Math.floor(limit / 2));
