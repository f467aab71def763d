const EVERY_MS = 1000;
/** The same while PostgreSQL is away, or has left its lineage: the reader notices its return soon. */
const SOON_MS = 200;

export interface LineageWatch extends Disposable {
  /** Checks at once after a lost connection, unless PostgreSQL is away: the next connection may lead to another server. */
  checkNow(): void;
}

export function watchLineage(check: () => Promise<boolean>): LineageWatch {
  let timer: NodeJS.Timeout | undefined;
  let isChecking = false;
  let isWell = true;
  let again = false;
  let isOver = false;
  const run = async () => {
    clearTimeout(timer);
    isChecking = true;
    again = false;
    isWell = await check().catch(() => false);
    isChecking = false;
    if (isOver) return;
    const pause = !isWell ? SOON_MS : again ? 0 : EVERY_MS;
    timer = setTimeout(run, pause).unref();
  };
  void run();
  return {
    checkNow() {
      if (isChecking) again = true;
      // While PostgreSQL is away, each check loses its own connection, and the next one comes soon.
      else if (!isOver && isWell) void run();
    },
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
