/** Milliseconds between two pulses of a worker. A reader waits for three of them, see src/snapshot/read/pulses.ts. */
const EVERY_MS = 500;

/** Sends pulses until it is disposed. A pulse that takes long delays the next one. */
export function startPulse(pulse: () => Promise<void>, everyMs = EVERY_MS): Disposable {
  let isUnderWay = false;
  const beat = () => {
    if (isUnderWay) return;
    isUnderWay = true;
    void pulse().finally(() => {
      isUnderWay = false;
    });
  };
  const timer = setInterval(beat, everyMs);
  timer.unref();
  beat();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
