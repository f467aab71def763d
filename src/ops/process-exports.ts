import { joinMetrics } from './collect.ts';

/** What one of several processes answers when it is asked for its metrics. */
export interface ProcessExport {
  readonly pid: number;
  /** As `exportMetrics` made it. */
  readonly metrics: unknown;
}

/**
 * Metrics of processes that come and go. What one had counted by the last look stays in the sums when it ends: a sum
 * that falls would be taken for a new beginning, and all the rest for new.
 */
export class ProcessExports {
  readonly #last = new Map<number, unknown>();
  #ended: unknown = [];
  #turn: Promise<unknown> = Promise.resolve();

  /**
   * @param answers those that do not answer this time are counted as they were the last time
   * @param running pids of the processes that there are
   * @returns exports for `mergeMetrics` and `joinMetrics`
   */
  look(answers: readonly unknown[], running: ReadonlySet<number>): Promise<readonly unknown[]> {
    // One after the other: two scrapes at once must not both move the same process to the ended ones.
    const turn = this.#turn.then(() => this.#look(answers, running));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #look(answers: readonly unknown[], running: ReadonlySet<number>): Promise<readonly unknown[]> {
    for (const answer of answers) if (isProcessExport(answer)) this.#last.set(answer.pid, answer.metrics);
    const ended = [...this.#last].filter(([pid]) => !running.has(pid));
    if (ended.length > 0) {
      this.#ended = await joinMetrics([this.#ended, ...ended.map(([, metrics]) => counted(metrics))]);
      for (const [pid] of ended) this.#last.delete(pid);
    }
    return [this.#ended, ...this.#last.values()];
  }
}

function isProcessExport(answer: unknown): answer is ProcessExport {
  return typeof answer === 'object' && answer !== null && 'pid' in answer && 'metrics' in answer;
}

/** What only grows. A gauge of a process that is gone says nothing. */
function counted(metrics: unknown): unknown {
  if (!Array.isArray(metrics)) return [];
  return metrics.filter(
    (metric: unknown) =>
      typeof metric === 'object' &&
      metric !== null &&
      'type' in metric &&
      (metric.type === 'counter' || metric.type === 'histogram'),
  );
}
