import { loadVerified } from '../document/load.ts';
import type { CacheLink } from './cache-subscription.ts';
import type { PostgresReads } from './postgres-reads.ts';

/** Anything else in the cache is damaged, and would be given to readers as it is. */
const STAMP = /^(?:catalogue|clusters|retired) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z$/;

/** Milliseconds between two looks into Postgres while the cache tells nothing. */
const READ_AGAIN_MS = 1000;

export interface VerificationOptions {
  readonly link: CacheLink;
  readonly postgres: PostgresReads;
  readonly now: () => number;
  /** Called whenever anything was learned or forgotten. */
  readonly onChange: () => void;
}

/** How old the data of sources and their regions is, as this reader has heard: from the cache, else from Postgres. */
export class Verification {
  readonly #link: CacheLink;
  readonly #postgres: PostgresReads;
  readonly #now: () => number;
  readonly #onChange: () => void;
  /** See `loadVerified`. */
  readonly #stamps = new Map<string, string>();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  /** Rises whenever anything was learned or forgotten. */
  #state = 1;
  #told = Promise.withResolvers<void>();

  constructor(options: VerificationOptions) {
    this.#link = options.link;
    this.#postgres = options.postgres;
    this.#now = options.now;
    this.#onChange = options.onChange;
  }

  /** Verification only moves forward: a cache that was flushed takes nothing back. */
  learn(stamps: Iterable<readonly [string, string]>): void {
    const before = this.#state;
    for (const [id, stamp] of stamps) {
      const known = this.#stamps.get(id);
      if (stamp === known || !STAMP.test(stamp) || (known !== undefined && !isLater(stamp, known))) continue;
      this.#stamps.set(id, stamp);
      this.#state += 1;
    }
    if (this.#state !== before) this.#onChange();
    if (this.#stamps.size > 0) this.#told.resolve();
  }

  forget(): void {
    this.#stamps.clear();
    this.#state += 1;
    this.#onChange();
    this.#told = Promise.withResolvers();
    this.#readAt = Number.NEGATIVE_INFINITY;
  }

  /**
   * When the oldest of these sources, or regions of a source, was verified, RFC 3339; undefined while one of them never
   * was. None at all stands for every source of the kind. At once where anything is known.
   */
  oldest(
    sources: readonly string[],
    kind: 'catalogue' | 'clusters',
  ): string | undefined | Promise<string | undefined> {
    if (!this.#link.linked || this.#stamps.size === 0) {
      const reading = this.#readNowAndThen();
      // Postgres may be away: with anything known, or the cache telling it meanwhile, it is not waited for.
      if (this.#stamps.size === 0)
        return Promise.race([reading, this.#told.promise]).then(() => this.known(sources, kind));
    }
    return this.known(sources, kind);
  }

  /**
   * As long as this is the same number, `known` answers the same; 0 while the cache tells nothing and Postgres has to
   * be asked.
   */
  get state(): number {
    return this.#link.linked && this.#stamps.size > 0 ? this.#state : 0;
  }

  /** As `oldest`, by what was heard so far. */
  known(sources: readonly string[], kind: 'catalogue' | 'clusters'): string | undefined {
    let oldest: string | undefined;
    if (sources.length === 0) {
      for (const [id, stamp] of this.#stamps) {
        if (stamp.startsWith(`${kind} `) && !id.includes('/')) oldest = earlier(oldest, stamp);
      }
    } else {
      for (const source of sources) {
        const stamp = this.#stamps.get(source);
        if (stamp === undefined) return undefined;
        oldest = earlier(oldest, stamp);
      }
    }
    return oldest === undefined ? undefined : time(oldest);
  }

  /** Reads Postgres, unless that was tried a moment ago; never fails. */
  async #readNowAndThen(): Promise<void> {
    if (this.#now() - this.#readAt > READ_AGAIN_MS) {
      this.#readAt = this.#now();
      this.#reading = this.#postgres.run(loadVerified).then(
        (stamps) => this.learn(stamps),
        () => {},
      );
    }
    await this.#reading;
  }
}

const time = (stamp: string): string => stamp.slice(stamp.indexOf(' ') + 1);

/** By time; at the same time a retired source stays retired. */
function isLater(a: string, b: string): boolean {
  return time(a) === time(b) ? a > b : time(a) > time(b);
}

function earlier(a: string | undefined, b: string): string {
  return a === undefined || time(b) < time(a) ? b : a;
}
