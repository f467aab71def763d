/** Answering 503 at once where a queue would only make everybody wait. */
import type { FastifyInstance } from 'fastify';
import { Unavailable } from '../snapshot/answer.ts';

/** More is asked than this process can answer. */
export class Overloaded extends Unavailable {}

export interface PressureOptions {
  /** Milliseconds by which the event loop may be late, on average over a sample. */
  readonly maxEventLoopDelayMs: number;
  /** Paths that are answered all the same: whoever watches the process must not take it for dead. */
  readonly exempt: readonly string[];
}

/** How often the event loop's delay is looked at (ms), unless it may be later than that. */
const SAMPLE_MS = 1000;

/** Refuses requests, with `Overloaded`, while the event loop is late. */
export function refuseUnderPressure(app: FastifyInstance, options: PressureOptions): void {
  app.register(import('@fastify/under-pressure'), {
    maxEventLoopDelay: options.maxEventLoopDelayMs,
    // Never shorter than what is allowed: a loop that stood still for a whole sample counts as endlessly late.
    sampleInterval: Math.max(SAMPLE_MS, options.maxEventLoopDelayMs),
    pressureHandler(request) {
      if (options.exempt.includes(request.routeOptions.url ?? '')) return;
      throw new Overloaded('the event loop is late');
    },
  });
}
