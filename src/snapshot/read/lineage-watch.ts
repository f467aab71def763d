const EVERY_MS = 1000;
/** The same while PostgreSQL is away or is another database, and after that: a worker may begin a new lineage. */
const SOON_MS = 200;
const SOON_FOR_MS = 5000;

export interface LineageWatch extends Disposable {
  /** Checks at once after a lost connection, unless PostgreSQL is away: the next connection may lead to another server. */
  checkNow(): void;
}

export function watchLineage(check: () => Promise<boolean>): LineageWatch {
  let timer: NodeJS.Timeout | undefined;
  let isChecking = false;
  let isWell = true;
  let again = false;
  let soonUntil = 0;
  let isOver = false;
  const run = async () => {
    clearTimeout(timer);
    isChecking = true;
    again = false;
    isWell = await check().catch(() => false);
    isChecking = false;
    if (isOver) return;
    if (!isWell) soonUntil = performance.now() + SOON_FOR_MS;
    const usual = performance.now() < soonUntil ? SOON_MS : EVERY_MS;
    const pause = isWell && again ? 0 : usual;
    timer = setTimeout(run, pause).unref();
  };
  void run();
  return {
    checkNow() {
      soonUntil = performance.now() + SOON_FOR_MS;
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
