/** Milliseconds between the starts of two pulses of a worker. A reader expects one in three of them, see src/snapshot/read/pulses.ts. */
const EVERY_MS = 500;

/** Sends pulses until it is disposed of. The next pulse starts at once after one that lasted longer than the pause. */
export function startPulse(pulse: () => Promise<void>, everyMs = EVERY_MS): Disposable {
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const beat = async () => {
    const began = performance.now();
    await pulse();
    if (isOver) return;
    const pause = Math.max(0, began + everyMs - performance.now());
    timer = setTimeout(() => void beat(), pause).unref();
  };
  void beat();
  return {
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
