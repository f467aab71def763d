/** Which runs are really under way: a process that was killed leaves its runs `running` behind. */
import { SourceDisabled } from '../../domain/disabled.ts';
import type { Sql } from '../client.ts';
import type { Session } from '../database.ts';
import { markOf } from '../run-mark.ts';
import { cancelledRuns } from './cancel.ts';
import { type BeginOptions, beginRun, type Run } from './runs.ts';
import { notAlone } from './set-aside.ts';

/** Milliseconds between two signs of life, and without one until Postgres itself gives up a session that hangs. */
const SIGN_EVERY_MS = 3000;
const SILENT_AT_MOST_MS = 10_000;

/** A run, and the end of what shows that it is under way. */
export interface LiveRun extends AsyncDisposable {
  readonly run: Run;
  /** Aborts within seconds after an operator has cancelled the run. */
  readonly signal: AbortSignal;
}

/**
 * The runs of this process. Each is marked by an advisory lock of one session that all of them share, which ends with
 * the process, however that ends: at once where the process died, within ten seconds where the machine did. The lock is
 * for others to look at; what a run may write is decided by its fence.
 */
export class LiveRuns implements AsyncDisposable {
  readonly #open: () => Session;
  readonly #live = new Map<number, AbortController>();
  /** Runs that are under way or about to begin: the session is theirs. */
  #users = 0;
  #isStopping = false;
  #session: Promise<Session> | undefined;
  #signs: NodeJS.Timeout | undefined;

  /** @param open opens a session; it is used for nothing else, and not through a pooler that shares sessions */
  constructor(open: () => Session) {
    this.#open = open;
  }

  /**
   * Begins a run, which is marked before anybody sees it.
   * @throws SourceDisabled, and what the database fails with
   */
  async begin(
    sourceId: string,
    slot: string | undefined,
    {
      inWorker = false,
      ...options
    }: Omit<BeginOptions, 'marked' | 'alone'> & { readonly inWorker?: boolean } = {},
  ): Promise<LiveRun> {
    this.#users += 1;
    try {
      const alone = inWorker ? { alone: this.#users === 1 && !this.#isStopping } : {};
      const run = await this.#begin(sourceId, slot, { ...options, ...alone, marked: true });
      const cancelled = new AbortController();
      this.#live.set(run.id, cancelled);
      await this.#noteCompany();
      this.#signs ??= setInterval(() => void this.#sign(), SIGN_EVERY_MS).unref();
      return { run, signal: cancelled.signal, [Symbol.asyncDispose]: () => this.#end(run.id) };
    } catch (error) {
      await this.#leave();
      throw error;
    }
  }

  async #begin(sourceId: string, slot: string | undefined, options: BeginOptions): Promise<Run> {
    const begin = async () => beginRun((await this.#current()).db, sourceId, slot, options);
    const isShared = this.#session !== undefined;
    try {
      return await begin();
    } catch (error) {
      if (!isShared || error instanceof SourceDisabled) throw error;
      // The session of another run may have been lost without anybody having noticed.
      await this.#close();
      return begin();
    }
  }

  /** The process was asked to stop: if it is killed before it has stopped, no run is the cause. */
  async stopping(): Promise<void> {
    this.#isStopping = true;
    if (this.#live.size > 0) await notAlone((await this.#current()).db, [...this.#live.keys()]);
  }

  /** If the process ends now, it is not known which of its runs is the cause. */
  async #noteCompany(): Promise<void> {
    if (this.#live.size > 1) await notAlone((await this.#current()).db, [...this.#live.keys()]);
  }

  #current(): Promise<Session> {
    this.#session ??= this.#connect().catch((error: unknown) => {
      this.#session = undefined;
      throw error;
    });
    return this.#session;
  }

  async #connect(): Promise<Session> {
    const session = this.#open();
    try {
      await session.sql`select set_config('idle_session_timeout', ${String(SILENT_AT_MOST_MS)}, false)`;
      for (const id of this.#live.keys())
        await session.sql`select pg_advisory_lock_shared(${mark(session.sql, id)})`;
      return session;
    } catch (error) {
      await session[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Replaces a session that was lost, with the marks of what still runs, and aborts cancelled runs. */
  async #sign(): Promise<void> {
    try {
      for (const id of await cancelledRuns((await this.#current()).db, [...this.#live.keys()]))
        this.#live.get(id)?.abort(new Error('an operator has cancelled the run'));
    } catch {
      await this.#close();
    }
  }

  async #end(id: number): Promise<void> {
    this.#live.delete(id);
    try {
      const session = await this.#session;
      if (session) await session.sql`select pg_advisory_unlock_shared(${mark(session.sql, id)})`;
    } catch {
      // With the session its marks are gone; what still runs gets them back with the next sign of life.
      await this.#close();
    }
    await this.#leave();
  }

  /** A session that nobody uses would be ended for its silence. */
  async #leave(): Promise<void> {
    this.#users -= 1;
    if (this.#users > 0) return;
    clearInterval(this.#signs);
    this.#signs = undefined;
    await this.#close();
  }

  async #close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.then(
      (open) => open[Symbol.asyncDispose](),
      () => {},
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#signs);
    await this.#close();
  }
}

/** The advisory lock that marks a run. */
const mark = (sql: Sql, id: number) => sql.unsafe(markOf(`${id}::text`));
