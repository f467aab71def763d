/** Milliseconds between two pulses of a worker. A reader expects one in three of them, see src/snapshot/read/pulses.ts. */
const EVERY_MS = 500;

/** Sends pulses until it is disposed of. A slow pulse delays the next one. */
export function startPulse(pulse: () => Promise<void>, everyMs = EVERY_MS): Disposable {
  let isRunning = false;
  const beat = () => {
    if (isRunning) return;
    isRunning = true;
    void pulse().finally(() => {
      isRunning = false;
    });
  };
  const timer = setInterval(beat, everyMs);
  timer.unref();
  beat();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
