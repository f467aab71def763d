/** Rejects requests with 503 while the event loop is late, so that no queue grows. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { Unavailable } from '../../snapshot/document/answer.ts';

export class Overloaded extends Unavailable {}

/** Milliseconds of a sample of the event loop's delay; longer if a longer delay is allowed. */
const SAMPLE_MS = 1000;
/** Milliseconds between two measurements, which each measured delay contains. */
const RESOLUTION_MS = 10;

/** Returns true while the event loop is late. */
export type IsLate = () => boolean;

/**
 * Measures without a file: a process that runs out of files must not end for it.
 * @param maxEventLoopDelayMs largest average delay of a sample (ms); 0 for no limit
 */
export function watchEventLoop(app: FastifyInstance, maxEventLoopDelayMs: number): IsLate {
  if (maxEventLoopDelayMs === 0) return () => false;
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  let isLate = false;
  delays.enable();
  const sampling = setInterval(
    () => {
      // The loop was blocked for the whole sample if there is no measurement.
      isLate = delays.count === 0 || delays.mean / 1e6 - RESOLUTION_MS > maxEventLoopDelayMs;
      delays.reset();
    },
    Math.max(SAMPLE_MS, maxEventLoopDelayMs),
  ).unref();
  app.addHook('onClose', (_, done) => {
    clearInterval(sampling);
    delays.disable();
    done();
  });
  return () => isLate;
}

export function refuseUnderPressure(isLate: IsLate): onRequestHookHandler {
  return (_request, _reply, done) => {
    if (isLate()) done(new Overloaded('the event loop is late'));
    else done();
  };
}
