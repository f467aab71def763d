/** The newest known revision of each lane of the cache. A publication raises the revision of its lane by one. */
export class Revisions {
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
