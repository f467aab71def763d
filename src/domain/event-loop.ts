/** Long work in slices, between which the event loop serves requests and connections. */

/** Milliseconds of a slice. Hot answers wait for at most one slice and the reads of a turn. */
const SLICE_MS = 0.5;

/** The same in a worker, which answers no requests (ms). */
export const WORKER_SLICE_MS = 8;

const waiting: (() => void)[] = [];

function resumeNext(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(resumeNext);
}

/** Waits for a turn of the event loop that no other long work has. Each turn has one slice, however much long work there is. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(resumeNext);
  });
}

/** The current slice of long work. After each small step the work checks `isOver`, and then awaits `next`. */
export class Slice {
  readonly #ms: number;
  #since = performance.now();

  constructor(ms = SLICE_MS) {
    this.#ms = ms;
  }

  get isOver(): boolean {
    return performance.now() - this.#since >= this.#ms;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.#since = performance.now();
  }
}

/** Runs work whose steps end with a `yield`. */
export async function inSlices<T>(work: Generator<void, T>): Promise<T> {
  const slice = new Slice();
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (slice.isOver) await slice.next();
  }
}
