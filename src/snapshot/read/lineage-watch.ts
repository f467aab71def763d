const EVERY_MS = 1000;
/** The same while PostgreSQL is away, or has left its lineage: the reader notices its return soon. */
const SOON_MS = 200;

export interface LineageWatch extends Disposable {
  /** Checks at once, e.g. after a lost connection: the next one may lead to another server. */
  checkNow(): void;
}

export function watchLineage(check: () => Promise<boolean>): LineageWatch {
  let timer: NodeJS.Timeout | undefined;
  let isChecking = false;
  let again = false;
  let isOver = false;
  const run = async () => {
    clearTimeout(timer);
    isChecking = true;
    again = false;
    const isWell = await check().catch(() => false);
    isChecking = false;
    if (isOver) return;
    timer = setTimeout(run, again ? 0 : isWell ? EVERY_MS : SOON_MS).unref();
  };
  void run();
  return {
    checkNow() {
      if (isChecking) again = true;
      else if (!isOver) void run();
    },
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
