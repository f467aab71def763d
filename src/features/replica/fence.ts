/** What a replica has to have before a reader believes it. */

/** Things heard of since, as many as are remembered. With more the replica is not asked. */
const HEARD_AT_MOST = 50_000;
/** Looks at the primary that are remembered until the replica has come so far. */
const LOOKS_AT_MOST = 600;

interface Heard {
  readonly version: number;
  readonly at: number;
}

interface Look {
  readonly at: number;
  readonly position: bigint;
}

/** Asked of what a replica has answered. */
export interface Believes {
  /** Whether this version, undefined for no such document, is as new as all that is known of the document. */
  version(id: string, version: number | undefined): boolean;
  /** Whether nobody has said that these were read well since: the answer would be older than the time that it names. */
  stamps(sources: readonly string[]): boolean;
}

/**
 * A reader that is linked hears of each change by itself, and a replica may be behind what it has heard. What it gave or
 * heard of is remembered until the replica is known to have it: everything that the primary had committed at a look at
 * its position in the log, once the replica has replayed up to there.
 */
export class ReplicaFence implements Believes {
  readonly #versions = new Map<string, Heard>();
  /** Source, or source and region, → its stamp (`loadFreshness`), and when that was heard. */
  readonly #stamps = new Map<string, { readonly stamp: string; readonly at: number }>();
  readonly #looks: Look[] = [];
  #coveredTo = Number.NEGATIVE_INFINITY;
  #heardAllAt: number;

  /** Times are in milliseconds of one clock. */
  constructor(now: number) {
    this.#heardAllAt = now;
  }

  /** Everything that had been committed by then is in the replica; minus infinity until that is known of any time. */
  get coveredTo(): number {
    return this.#coveredTo;
  }

  /** Whether it has what could have been missed when messages were lost. */
  get coversGap(): boolean {
    return this.#coveredTo >= this.#heardAllAt;
  }

  get isFull(): boolean {
    return this.#versions.size + this.#stamps.size > HEARD_AT_MOST;
  }

  /** This version of a document exists: it was given, or published. */
  heard(id: string, version: number, now: number): void {
    const known = this.#versions.get(id);
    if (this.isFull && !known) return;
    // The newest time counts: until then the replica may lack it.
    if (!known || known.version <= version) this.#versions.set(id, { version, at: now });
  }

  heardStamp(source: string, stamp: string, now: number): void {
    if (!this.isFull) this.#stamps.set(source, { stamp, at: now });
  }

  /** Whether there are stamps that the replica is not known to have. */
  get lacksStamps(): boolean {
    return this.#stamps.size > 0;
  }

  /** The replica has these, and with them what was read at those times: one transaction writes both. */
  hasStamps(stamps: ReadonlyMap<string, string>): void {
    for (const [source, { stamp }] of this.#stamps)
      if (timeOf(stamps.get(source) ?? '') >= timeOf(stamp)) this.#stamps.delete(source);
  }

  /** Messages may have been lost: anything may have changed until now. */
  heardAll(now: number): void {
    this.#heardAllAt = now;
  }

  /** Another history: versions begin anew. */
  clear(now: number): void {
    this.#versions.clear();
    this.#stamps.clear();
    this.#looks.length = 0;
    this.#coveredTo = Number.NEGATIVE_INFINITY;
    this.#heardAllAt = now;
  }

  /** @param at before it was asked @param position that of the primary's log */
  lookedAtPrimary(at: number, position: bigint): void {
    this.#looks.push({ at, position });
    if (this.#looks.length > LOOKS_AT_MOST) this.#looks.shift();
  }

  /** @param position up to which the replica has replayed the log */
  lookedAtReplica(position: bigint): void {
    const covered = this.#looks.findLastIndex((look) => look.position <= position);
    if (covered < 0) return;
    this.#coveredTo = this.#looks[covered]?.at ?? this.#coveredTo;
    this.#looks.splice(0, covered + 1);
    for (const [id, { at }] of this.#versions) if (at <= this.#coveredTo) this.#versions.delete(id);
    for (const [source, { at }] of this.#stamps) if (at <= this.#coveredTo) this.#stamps.delete(source);
  }

  version(id: string, version: number | undefined): boolean {
    return version !== undefined && version >= (this.#versions.get(id)?.version ?? 0);
  }

  stamps(sources: readonly string[]): boolean {
    // A document without sources has the age of all of them.
    return sources.length === 0
      ? this.#stamps.size === 0
      : !sources.some((source) => this.#stamps.has(source));
  }
}

const timeOf = (stamp: string): string => stamp.slice(stamp.indexOf(' ') + 1);
