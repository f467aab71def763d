/** Like AsyncDisposableStack, but closes a resource at once that an interrupted start registers late. */
export class Disposer implements AsyncDisposable {
  readonly #steps: (() => Promise<unknown> | unknown)[] = [];
  #closed = false;

  use<T extends AsyncDisposable | Disposable>(resource: T): T {
    this.defer(() =>
      Symbol.asyncDispose in resource ? resource[Symbol.asyncDispose]() : resource[Symbol.dispose](),
    );
    return resource;
  }

  defer(step: () => Promise<unknown> | unknown): void {
    this.#steps.push(step);
    if (this.#closed) void this[Symbol.asyncDispose]();
  }

  /** Runs every step, even after a failure. @throws the first failure */
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
