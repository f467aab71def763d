/** Milliseconds between two looks. */
const EVERY_MS = 1000;
/** The same while PostgreSQL is away, and while it has gone back: the first look after its return tells. */
const SOON_MS = 200;

export interface LineageWatch extends Disposable {
  /** Looks at once: a connection was lost, and behind the next one may be another server, or another state. */
  lookNow(): void;
}

/** @param check one look; false while the database has left its lineage; it throws while PostgreSQL does not say */
export function watchLineage(check: () => Promise<boolean>): LineageWatch {
  let timer: NodeJS.Timeout | undefined;
  let isLooking = false;
  let again = false;
  let isOver = false;
  const look = async () => {
    clearTimeout(timer);
    isLooking = true;
    again = false;
    const isWell = await check().catch(() => false);
    isLooking = false;
    if (isOver) return;
    timer = setTimeout(look, again ? 0 : isWell ? EVERY_MS : SOON_MS).unref();
  };
  void look();
  return {
    lookNow() {
      if (isLooking) again = true;
      else if (!isOver) void look();
    },
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
