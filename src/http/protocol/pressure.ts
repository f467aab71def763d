/** Rejects requests with 503 while the event loop is late, so that no queue grows. */
import underPressure from '@fastify/under-pressure';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { Unavailable } from '../../snapshot/document/answer.ts';

export class Overloaded extends Unavailable {}

/** Milliseconds of a sample of the event loop's delay; longer if a longer delay is allowed. */
const SAMPLE_MS = 1000;

/** @param maxEventLoopDelayMs largest average delay of a sample (ms); 0 for no limit */
export function refuseUnderPressure(app: FastifyInstance, maxEventLoopDelayMs: number): onRequestHookHandler {
  if (maxEventLoopDelayMs === 0) return (_request, _reply, done) => done();
  let isLate = () => false;
  // Registered in a separate scope: the plugin adds its hook to every route, before all others.
  app.register((scope, _options, done) => {
    scope.register(underPressure, {
      maxEventLoopDelay: maxEventLoopDelayMs,
      // At least the allowed delay: a loop that is blocked for a whole sample counts as infinitely late.
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
