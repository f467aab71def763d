import { joinMetrics } from './collect.ts';

export interface ProcessExport {
  readonly pid: number;
  readonly metrics: unknown;
}

/** Sums the metrics of processes. Counts of ended processes stay: Prometheus takes a falling sum for a restart. */
export class ProcessExports {
  readonly #last = new Map<number, unknown>();
  #ended: unknown = [];
  #turn: Promise<unknown> = Promise.resolve();

  /** @param answers a process without an answer counts with its last one @param running pids of the current processes */
  add(answers: readonly unknown[], running: ReadonlySet<number>): Promise<readonly unknown[]> {
    // One call after the other: two scrapes at once must not both add the same process to the ended ones.
    const turn = this.#turn.then(() => this.#add(answers, running));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #add(answers: readonly unknown[], running: ReadonlySet<number>): Promise<readonly unknown[]> {
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

/** Returns the metrics that only grow: the gauges of an ended process mean nothing. */
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
