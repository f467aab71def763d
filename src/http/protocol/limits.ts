/** Limits of requests, answers and connections. Durations in milliseconds. */
export interface HttpLimits {
  /** Bytes of the request line and header fields together; more: 431. A path may be nearly as long. */
  readonly maxHeaderSize: number;
  /** Time from the connection, or the previous request, to the end of the header fields; more: 408. */
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** Time between two checks of these. */
  readonly checkIntervalMs: number;
  /** Idle time of a connection with an accepted token; longer than that of load balancers. */
  readonly keepAliveTimeoutMs: number;
  /** Time without progress of an answer after which its connection is cut. */
  readonly idleTimeoutMs: number;
  /** Time for an answer, in addition to the readers' own deadlines; more: 503. */
  readonly answerTimeoutMs: number;
  /** Open connections, half of them for one address; more are closed at once. 0: no limit. */
  readonly maxConnections: number;
  readonly strangerIdleMs: number;
  /** Concurrent streams and waiting requests of the changes feed; more: 503. */
  readonly streamsAtMost: number;
  /** Event loop delay; above it, uncached requests are answered with 503. 0: no limit. */
  readonly maxEventLoopDelayMs: number;
  readonly requestsPerMinute: number;
  readonly downloadsAtOnce: number;
  /** Time for which `close()` waits for open answers. */
  readonly drainMs: number;
}

export const DEFAULT_HTTP_LIMITS: HttpLimits = {
  maxHeaderSize: 32 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 20_000,
  checkIntervalMs: 1_000,
  keepAliveTimeoutMs: 72_000,
  idleTimeoutMs: 30_000,
  answerTimeoutMs: 10_000,
  maxConnections: 10_000,
  strangerIdleMs: 5_000,
  streamsAtMost: 5_000,
  maxEventLoopDelayMs: 1_000,
  requestsPerMinute: 0,
  downloadsAtOnce: 16,
  drainMs: 10_000,
};
