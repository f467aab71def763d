/** Holds the newest value only, and ends with a failure. */
export class ConflatingChannel<T> {
  #waiting: PromiseWithResolvers<void> = Promise.withResolvers();
  #value: { readonly value: T } | undefined;
  #failure: { readonly failure: unknown } | undefined;

  put(value: T): void {
    this.#value = { value };
    this.#waiting.resolve();
  }

  /** Ends the channel. A value that waits is still taken first. */
  fail(failure: unknown): void {
    this.#failure ??= { failure };
    this.#waiting.resolve();
  }

  async take(): Promise<{ readonly value: T } | { readonly failure: unknown }> {
    await this.#waiting.promise;
    const next = this.#value ?? this.#failure;
    if (next === undefined) throw new Error('unreachable: the channel has one consumer');
    this.#value = undefined;
    if (this.#failure === undefined) this.#waiting = Promise.withResolvers();
    return next;
  }

  /** Returns a value that has arrived since, if there is one. */
  takeNow(): T | undefined {
    const value = this.#value?.value;
    if (this.#value !== undefined && this.#failure === undefined) this.#waiting = Promise.withResolvers();
    this.#value = undefined;
    return value;
  }
}
