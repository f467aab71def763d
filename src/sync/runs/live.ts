/** Finds out which runs are live: the runs of a killed process keep the outcome `running`. */
import { auditRow } from '../../db/audit.ts';
import type { Connection, Database } from '../../db/connection/client.ts';
import { alias, and, desc, eq, inArray, sql } from '../../db/connection/drizzle.ts';
import { increment, nameOf } from '../../db/connection/statements.ts';
import { IS_LIVE, lockKeyOf } from '../../db/runs/status.ts';
import { scheduleSlots, sources, syncRuns } from '../../db/schema.ts';
import type { Decider } from '../../domain/operator.ts';
import { SourceDisabled } from '../../domain/source.ts';
import { notAlone } from './disabled.ts';
import { type BeginOptions, beginRun, type Run } from './run.ts';

const HEARTBEAT_MS = 3000;
/** `idle_session_timeout` (ms): a process that hangs loses its locks. */
const IDLE_TIMEOUT_MS = 10_000;

export interface LiveRun extends AsyncDisposable {
  readonly run: Run;
  /** Aborts within seconds after an operator cancelled the run. */
  readonly signal: AbortSignal;
}

/**
 * The runs of this process. Each has an advisory lock on one shared connection. The locks end with the process: at once if it
 * dies, within ten seconds if its machine dies. They only show which runs are live; the fence decides which run may write.
 */
export class LiveRuns implements AsyncDisposable {
  readonly #open: () => Connection;
  readonly #live = new Map<number, AbortController>();
  /** Runs that are live or about to begin. The connection stays open for them. */
  #users = 0;
  #isStopping = false;
  #connection: Promise<Connection> | undefined;
  #heartbeat: NodeJS.Timeout | undefined;

  /** @param open opens a connection for the locks alone, not through a pooler */
  constructor(open: () => Connection) {
    this.#open = open;
  }

  /** Begins a run and takes its lock in the same statement. @throws SourceDisabled, and errors of PostgreSQL */
  async begin(
    sourceId: string,
    slot: string | undefined,
    {
      inWorker = false,
      ...options
    }: Omit<BeginOptions, 'isLocked' | 'alone'> & { readonly inWorker?: boolean } = {},
  ): Promise<LiveRun> {
    this.#users += 1;
    try {
      const alone = inWorker ? { alone: this.#users === 1 && !this.#isStopping } : {};
      const run = await this.#begin(sourceId, slot, { ...options, ...alone, isLocked: true });
      const cancelled = new AbortController();
      this.#live.set(run.id, cancelled);
      // If the process dies now, any of its runs may be the cause.
      if (this.#live.size > 1) await this.#recordNotAlone();
      this.#heartbeat ??= setInterval(() => void this.#beat(), HEARTBEAT_MS).unref();
      return { run, signal: cancelled.signal, [Symbol.asyncDispose]: () => this.#end(run.id) };
    } catch (error) {
      await this.#leave();
      throw error;
    }
  }

  async #begin(sourceId: string, slot: string | undefined, options: BeginOptions): Promise<Run> {
    const begin = async () => beginRun((await this.#current()).db, sourceId, slot, options);
    const isShared = this.#connection !== undefined;
    try {
      return await begin();
    } catch (error) {
      if (!isShared || error instanceof SourceDisabled) throw error;
      // The shared connection may be lost.
      await this.#close();
      return begin();
    }
  }

  /** Records that the process is stopping: if it is killed now, no run is the cause. */
  async stopping(): Promise<void> {
    this.#isStopping = true;
    if (this.#live.size > 0) await this.#recordNotAlone();
  }

  async #recordNotAlone(): Promise<void> {
    await notAlone((await this.#current()).db, [...this.#live.keys()]);
  }

  #current(): Promise<Connection> {
    this.#connection ??= this.#connect().catch((error: unknown) => {
      this.#connection = undefined;
      throw error;
    });
    return this.#connection;
  }

  async #connect(): Promise<Connection> {
    const connection = this.#open();
    try {
      const { db } = connection;
      await db.execute(sql`select set_config('idle_session_timeout', ${String(IDLE_TIMEOUT_MS)}, false)`);
      for (const id of this.#live.keys())
        await db.execute(sql`select pg_advisory_lock_shared(${lockKey(id)})`);
      return connection;
    } catch (error) {
      await connection[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Aborts cancelled runs. A lost connection is replaced, with the locks of all live runs. */
  async #beat(): Promise<void> {
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
      const connection = await this.#connection;
      if (connection) await connection.db.execute(sql`select pg_advisory_unlock_shared(${lockKey(id)})`);
    } catch {
      // The connection is lost with all locks. The next heartbeat takes those of live runs again.
      await this.#close();
    }
    await this.#leave();
  }

  /** Closes a connection without runs, since PostgreSQL would end it for idleness. */
  async #leave(): Promise<void> {
    this.#users -= 1;
    if (this.#users > 0) return;
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
    await this.#close();
  }

  async #close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.then(
      (open) => open[Symbol.asyncDispose](),
      () => {},
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#heartbeat);
    await this.#close();
  }
}

const lockKey = (id: number) => sql.raw(lockKeyOf(`${id}::text`));

const r = alias(syncRuns, 'r');

export type Cancelled =
  | { readonly outcome: 'cancelled'; readonly run: number }
  | { readonly outcome: 'idle' }
  | { readonly outcome: 'unknown' };

/**
 * Raises the source's fence and records the run as cancelled. Its attempt is finished: no retry follows. The statement waits for a
 * run that is committing; such a run keeps its outcome.
 * @param runId undefined for any live run
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
        where ${r.sourceId} = ${sourceId} and ${r.outcome} = 'running' and ${sql.raw(IS_LIVE)}
          and (${runId ?? null}::bigint is null or ${r.id} = ${runId ?? null}::bigint)
        returning ${r.id}
      ), raised as (
        update ${sources} set ${nameOf(sources.fence)} = ${increment(sources.fence)}
        where ${sources.id} = ${sourceId} and exists (select from cancelled)
      ), done as (
        update ${scheduleSlots} set ${nameOf(scheduleSlots.dueAt)} = null
        where ${scheduleSlots.schedule} = ${sourceId} and ${scheduleSlots.begunAt} is not null
          and exists (select from cancelled)
      ), audited as (${auditRow(decider, entry)} from cancelled)
      select id from cancelled`);
    return row === undefined ? { outcome: 'idle' } : { outcome: 'cancelled', run: Number(row.id) };
  });
}

export async function cancelledRuns(db: Database, ids: readonly number[]): Promise<number[]> {
  const rows = await db
    .select({ id: syncRuns.id })
    .from(syncRuns)
    .where(and(inArray(syncRuns.id, [...ids]), eq(syncRuns.outcome, 'cancelled')));
  return rows.map(({ id }) => id);
}

/** Returns the id of a source's current run; undefined without one. */
export async function liveRunOf(db: Database, sourceId: string): Promise<number | undefined> {
  const [live] = await db
    .select({ id: r.id })
    .from(r)
    .where(and(eq(r.sourceId, sourceId), eq(r.outcome, 'running'), sql.raw(IS_LIVE)))
    .orderBy(desc(r.id))
    .limit(1);
  return live?.id;
}
