import { Worker } from 'node:worker_threads';
import { ownScript } from '../../config/package.ts';
import type { CopyThreadData } from './copy-thread.ts';
import type { CopyFailure } from './failures.ts';
import type { Kind, Question, Questions, Reply } from './messages.ts';

/** Why there is no answer: what the thread says, or that it does not, for a while (`slow`). */
export type NoAnswer = CopyFailure | 'slow';

export type Outcome<K extends Kind> =
  | { readonly answer: Questions[K]['answer'] }
  | { readonly failure: NoAnswer /** The copy was removed as a whole. */; readonly dropped: boolean };

export interface CopyClientEvents {
  onFailure(reason: NoAnswer, message: string): void;
  /** The copy begins anew, empty. */
  onDropped(): void;
}

/** Questions that may wait at once. A thread that waits for a hung disk must not gather more and more. */
const WAITING_AT_MOST = 256;
/** Milliseconds after which a thread that ended is started again. */
const START_AGAIN_MS = 5000;
/** Milliseconds that a thread may take to start, beside the deadline of what it is asked then. */
const START_MS = 3000;

/** Talks to the thread of a disk copy. Every question ends in bounded time; none throws. */
export class CopyClient {
  readonly #data: CopyThreadData;
  readonly #events: CopyClientEvents;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #worker: Worker | undefined;
  #endedAt = Number.NEGATIVE_INFINITY;
  #numbers = 0;
  #hasStarted = false;

  constructor(data: CopyThreadData, events: CopyClientEvents) {
    this.#data = data;
    this.#events = events;
    this.#start();
  }

  async ask<K extends Kind>(kind: K, ask: Questions[K]['ask'], deadlineMs: number): Promise<Outcome<K>> {
    const worker = this.#worker ?? this.#start();
    if (!worker) return this.#failed('failed', 'the thread of the disk copy ended');
    if (this.#waiting.size >= WAITING_AT_MOST) return this.#failed('slow', 'too much waits for the disk');
    const number = ++this.#numbers;
    const { promise, resolve } = Promise.withResolvers<Reply | undefined>();
    this.#waiting.set(number, resolve);
    const timer = setTimeout(() => resolve(undefined), deadlineMs + (this.#hasStarted ? 0 : START_MS));
    const question: Question<K> = { number, kind, ask };
    worker.postMessage(question);
    const reply = await promise;
    clearTimeout(timer);
    if (!reply) return this.#failed('slow', `the disk did not answer within ${deadlineMs} ms`);
    if (reply.failure) return this.#failed(reply.failure.reason, reply.failure.message, reply.dropped);
    return { answer: reply.answer as Questions[K]['answer'] };
  }

  async end(): Promise<void> {
    this.#endedAt = Number.POSITIVE_INFINITY;
    await this.#worker?.terminate();
  }

  #failed(failure: NoAnswer, message: string, dropped = false) {
    this.#events.onFailure(failure, message);
    return { failure, dropped };
  }

  #start(): Worker | undefined {
    if (performance.now() - this.#endedAt < START_AGAIN_MS) return undefined;
    const worker = new Worker(ownScript('src/snapshot/disk/copy-thread'), {
      workerData: this.#data,
      name: 'disk copy',
    });
    worker.unref();
    worker.on('message', (reply: Reply) => {
      this.#hasStarted = true;
      this.#waiting.get(reply.number)?.(reply);
      this.#waiting.delete(reply.number);
      if (reply.dropped) this.#events.onDropped();
    });
    const ended = (message: string) => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#hasStarted = false;
      this.#endedAt = Math.max(this.#endedAt, performance.now());
      for (const [number, resolve] of this.#waiting)
        resolve({ number, failure: { reason: 'failed', message } });
      this.#waiting.clear();
    };
    worker.on('error', (error: Error) => ended(error.message));
    worker.on('exit', () => ended('the thread of the disk copy ended'));
    this.#worker = worker;
    return worker;
  }
}
