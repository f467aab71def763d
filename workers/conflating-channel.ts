/** A place for one thing, the newest: what was not taken by then is gone. Ends with a failure. */
export class ConflatingChannel<T> {
  #waiting: PromiseWithResolvers<void> = Promise.withResolvers();
  #value: { readonly value: T } | undefined;
  #failure: { readonly failure: unknown } | undefined;

  put(value: T): void {
    this.#value = { value };
    this.#waiting.resolve();
  }

  /** Nothing comes after what is there. */
  fail(failure: unknown): void {
    this.#failure ??= { failure };
    this.#waiting.resolve();
  }

  /** Waits for something; what came before a failure goes before it. */
  async take(): Promise<{ readonly value: T } | { readonly failure: unknown }> {
    await this.#waiting.promise;
    const next = this.#value ?? this.#failure;
    if (next === undefined) throw new Error('unreachable: nobody else takes');
    this.#value = undefined;
    if (this.#failure === undefined) this.#waiting = Promise.withResolvers();
    return next;
  }

  /** What has come since, if anything: in the place of what was taken. */
  takeNow(): T | undefined {
    const value = this.#value?.value;
    if (this.#value !== undefined && this.#failure === undefined) this.#waiting = Promise.withResolvers();
    this.#value = undefined;
    return value;
  }
}
