/** Which runs are really under way: a process that was killed leaves its runs `running` behind. */

import { SourceDisabled } from '../../domain/disabled-source.ts';
import type { Decider } from '../../domain/operator.ts';
import { auditRow } from '../audit.ts';
import type { Sql } from '../connection/client.ts';
import type { Database, Session } from '../connection/database.ts';
import { alias, and, desc, eq, inArray, sql } from '../connection/drizzle.ts';
import { increment, nameOf } from '../connection/statements.ts';
import { IS_UNDER_WAY, markOf } from '../runs.ts';
import { scheduleSlots, sources, syncRuns } from '../schema.ts';
import { notAlone } from './disabled.ts';
import { type BeginOptions, beginRun, type Run } from './run.ts';

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

const r = alias(syncRuns, 'r');

export type Cancelled =
  | { readonly outcome: 'cancelled'; readonly run: number }
  /** No run of the source is under way, or not the one that was named. */
  | { readonly outcome: 'idle' }
  /** There is no such source. */
  | { readonly outcome: 'unknown' };

/**
 * Raises the source's fence and records the run as cancelled, with name and reason. Its slot is done: no attempt follows.
 * The statement waits for a run that is committing, and such a run keeps its outcome.
 * @param runId only this run; undefined for the one that is under way
 */
export async function cancelRun(
  db: Database,
  sourceId: string,
  runId: number | undefined,
  decider: Decider,
): Promise<Cancelled> {
  return db.transaction(async (tx) => {
    const known = await tx
      .select({ id: sources.id })
      .from(sources)
      .where(eq(sources.id, sourceId))
      .for('update');
    if (known.length === 0) return { outcome: 'unknown' };
    const error = `cancelled by ${decider.by}${decider.reason === undefined ? '' : `: ${decider.reason}`}`;
    const entry = {
      action: 'source.cancel',
      subject: { kind: 'source', id: sourceId },
      details: sql`jsonb_build_object('run', id)`,
    };
    const [row] = await tx.execute<{ id: string }>(sql`
      with cancelled as (
        update ${syncRuns} ${r} set ${nameOf(r.outcome)} = 'cancelled', ${nameOf(r.error)} = ${error},
          ${nameOf(r.finishedAt)} = clock_timestamp()
        where ${r.sourceId} = ${sourceId} and ${r.outcome} = 'running' and ${sql.raw(IS_UNDER_WAY)}
          and (${runId ?? null}::bigint is null or ${r.id} = ${runId ?? null}::bigint)
        returning ${r.id}, ${r.slot}
      ), raised as (
        update ${sources} set ${nameOf(sources.fence)} = ${increment(sources.fence)}
        where ${sources.id} = ${sourceId} and exists (select from cancelled)
      ), done as (
        update ${scheduleSlots} set ${nameOf(scheduleSlots.dueAt)} = null from cancelled
        where ${scheduleSlots.schedule} = ${sourceId} and ${scheduleSlots.slot} = cancelled.slot
      ), audited as (${auditRow(decider, entry)} from cancelled)
      select id from cancelled`);
    return row === undefined ? { outcome: 'idle' } : { outcome: 'cancelled', run: Number(row.id) };
  });
}

/** Those of these runs that were cancelled. */
export async function cancelledRuns(db: Database, ids: readonly number[]): Promise<number[]> {
  const rows = await db
    .select({ id: syncRuns.id })
    .from(syncRuns)
    .where(and(inArray(syncRuns.id, [...ids]), eq(syncRuns.outcome, 'cancelled')));
  return rows.map(({ id }) => id);
}

/** Returns true if the last run of a source began after an instant and was cancelled. */
export async function wasCancelledSince(db: Database, sourceId: string, since: Date): Promise<boolean> {
  const [last] = await db
    .select({
      isCancelled: sql<boolean>`${syncRuns.outcome} = 'cancelled' and ${syncRuns.startedAt} >= ${since.toISOString()}::timestamptz`,
    })
    .from(syncRuns)
    .where(eq(syncRuns.sourceId, sourceId))
    .orderBy(desc(syncRuns.id))
    .limit(1);
  return last?.isCancelled ?? false;
}
