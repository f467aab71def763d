/** Lets one wait for what others have changed, without a queue: what happens meanwhile is one change. */
export class Changes {
  #news = Promise.withResolvers<void>();
  #failure: { readonly error: unknown } | undefined;

  /** Something is other than it was. */
  note(): void {
    this.#news.resolve();
  }

  /** Nothing more will come. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#news.resolve();
  }

  /** Waits for the next change, or takes the one that is there. @throws what was failed with */
  async next(): Promise<void> {
    await this.#news.promise;
    this.throwIfFailed();
    this.#news = Promise.withResolvers<void>();
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}
