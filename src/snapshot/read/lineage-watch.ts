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
    // While PostgreSQL is away, each check loses its own connection.
    const pause = !isWell ? SOON_MS : again ? 0 : EVERY_MS;
    timer = setTimeout(run, pause).unref();
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
