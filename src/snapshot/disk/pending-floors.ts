import type { Outcome } from './copy-client.ts';
import type { KnownVersions } from './messages.ts';

type Floor = readonly [id: string, version: number];

const NOTHING: KnownVersions = { newest: 0, held: 0 };

/** Versions that were given or heard of, on their way to the disk copy: one message at a time, with all that came since. */
export class PendingFloors {
  readonly #ask: (floors: readonly Floor[]) => Promise<Outcome<'supersede'>>;
  readonly #deadlineMs: { readonly first: number; readonly later: number };
  #hasAnswered = false;
  #floors = new Map<string, number>();
  /** On their way, and not there yet. */
  #sent: ReadonlyMap<string, number> = new Map();
  #waiting: { readonly id: string; readonly resolve: (known: KnownVersions) => void }[] = [];
  #sending: Promise<boolean> | undefined;
  /** True from an answer that was waited for in vain until the next one. */
  #isSlow = false;
  #isScheduled = false;

  /** @param deadlineMs for which `sent` waits; `first` until there was an answer: a thread takes its time to start */
  constructor(
    ask: (floors: readonly Floor[]) => Promise<Outcome<'supersede'>>,
    deadlineMs: { readonly first: number; readonly later: number },
  ) {
    this.#ask = ask;
    this.#deadlineMs = deadlineMs;
  }

  add(id: string, version: number): void {
    this.#floors.set(id, Math.max(version, this.#floors.get(id) ?? 0));
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // What else comes in this turn of the event loop goes along.
    setImmediate(() => {
      this.#isScheduled = false;
      void this.send();
    });
  }

  /** The newest version that is not there yet; 0 without one. */
  get(id: string): number {
    return Math.max(this.#floors.get(id) ?? 0, this.#sent.get(id) ?? 0);
  }

  /** What the copy knows, once it has taken what was added; nothing when it does not answer in time. */
  async sent(id: string): Promise<KnownVersions> {
    if (this.#isSlow) return NOTHING;
    const { promise, resolve } = Promise.withResolvers<KnownVersions>();
    this.#waiting.push({ id, resolve });
    const timer = setTimeout(
      () => {
        this.#isSlow = true;
        resolve(NOTHING);
      },
      this.#deadlineMs[this.#hasAnswered ? 'later' : 'first'],
    );
    const known = await promise;
    clearTimeout(timer);
    return known;
  }

  /** Sends all. False when some could not be put down and wait for the next time. */
  send(): Promise<boolean> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  clear(): void {
    this.#floors.clear();
  }

  async #send(): Promise<boolean> {
    while (this.#floors.size > 0) {
      const floors = [...this.#floors];
      const waiting = this.#waiting;
      this.#sent = this.#floors;
      this.#floors = new Map();
      this.#waiting = [];
      const outcome = await this.#ask(floors);
      this.#sent = new Map();
      const isDown = 'answer' in outcome;
      const known = new Map(isDown ? floors.map(([id], i) => [id, outcome.answer[i] ?? NOTHING]) : []);
      for (const { id, resolve } of waiting) resolve(known.get(id) ?? NOTHING);
      // A copy that was removed has nothing older.
      if (!isDown && !outcome.dropped) {
        this.#takeBack(floors);
        return false;
      }
      this.#isSlow = false;
      this.#hasAnswered = true;
    }
    return true;
  }

  #takeBack(floors: readonly Floor[]): void {
    for (const [id, version] of floors) this.#floors.set(id, Math.max(version, this.#floors.get(id) ?? 0));
  }
}
