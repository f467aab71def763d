import type { Telemetry } from 'bullmq';
import type { FastifyInstance } from 'fastify';

/** Traces that are sent; disposing sends what is left. */
export interface Tracing extends AsyncDisposable {
  /** What queues and their consumers tell. */
  readonly telemetry: Telemetry;
  /** Begins a trace, or goes on with the caller's, for every request to the API. To be called before it listens. */
  traceRequests(app: FastifyInstance): void;
}
