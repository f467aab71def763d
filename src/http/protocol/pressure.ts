/** Answering 503 at once where a queue would only make everybody wait. */
import underPressure from '@fastify/under-pressure';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { Unavailable } from '../../snapshot/document/answer.ts';

/** More is asked than this process can answer. */
export class Overloaded extends Unavailable {}

/** How often the event loop's delay is looked at (ms), unless it may be later than that. */
const SAMPLE_MS = 1000;

/**
 * A hook for the routes that are to refuse requests, with `Overloaded`, while the event loop is late.
 * @param maxEventLoopDelayMs milliseconds by which it may be, on average over a sample; 0 stands for any
 */
export function refuseUnderPressure(app: FastifyInstance, maxEventLoopDelayMs: number): onRequestHookHandler {
  if (maxEventLoopDelayMs === 0) return (_request, _reply, done) => done();
  let isLate = () => false;
  // In a scope of its own: the plugin would add its hook to every route, and before all others.
  app.register((scope, _options, done) => {
    scope.register(underPressure, {
      maxEventLoopDelay: maxEventLoopDelayMs,
      // Never shorter than what is allowed: a loop that stood still for a whole sample counts as endlessly late.
      sampleInterval: Math.max(SAMPLE_MS, maxEventLoopDelayMs),
    });
    isLate = () => scope.isUnderPressure();
    done();
  });
  return (_request, _reply, done) => {
    if (isLate()) done(new Overloaded('the event loop is late'));
    else done();
  };
}
