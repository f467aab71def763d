/** A conflating signal: one task waits for changes by others. Changes while it is busy count as one. */
export class ChangeSignal {
  #news = Promise.withResolvers<void>();
  #failure: { readonly error: unknown } | undefined;

  /** Something has changed. */
  note(): void {
    this.#news.resolve();
  }

  /** Ends the waiting with a failure. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#news.resolve();
  }

  /** Waits for a change since the last call. @throws the error given to `fail` */
  async next(): Promise<void> {
    await this.#news.promise;
    this.throwIfFailed();
    this.#news = Promise.withResolvers<void>();
  }

  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}
