/**
 * What has to be closed, newest first; registered where it is opened. What is registered after the closing, by a
 * start that was interrupted, is closed at once. (AsyncDisposableStack does less and is not in Node 22.)
 */
export class Disposer implements AsyncDisposable {
  readonly #steps: (() => Promise<unknown> | unknown)[] = [];
  #closed = false;

  /** Takes over something disposable and hands it back. */
  use<T extends AsyncDisposable>(resource: T): T {
    this.defer(() => resource[Symbol.asyncDispose]());
    return resource;
  }

  defer(step: () => Promise<unknown> | unknown): void {
    this.#steps.push(step);
    if (this.#closed) void this[Symbol.asyncDispose]();
  }

  /** Runs every step, also when one fails; the first failure is thrown at the end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const failures: unknown[] = [];
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
