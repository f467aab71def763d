/** Limits of requests, answers and connections. Durations in milliseconds. */
export const DEFAULT_HTTP_LIMITS = {
  /** Bytes of the request line and header fields together; more: 431. A path may be nearly as long. */
  maxHeaderSize: 32 * 1024,
  /** Time from the connection, or the previous request, to the end of the header fields; more: 408. */
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 20_000,
  /** Time between two checks of these. */
  checkIntervalMs: 1_000,
  /** Idle time of a connection with an accepted token; longer than that of load balancers. */
  keepAliveTimeoutMs: 72_000,
  /** Time without progress of an answer after which its connection is cut. */
  idleTimeoutMs: 30_000,
  /** Time for an answer, in addition to the readers' own deadlines; more: 503. */
  answerTimeoutMs: 10_000,
  /** Open connections, half of them for one address; more get no answer except to a liveness probe. 0: no limit. */
  maxConnections: 10_000,
  /** How long a connection without an accepted token may be idle, and its answer may make no progress. */
  strangerIdleMs: 5_000,
  /** Concurrent streams of the changes feed; more: 503. */
  streamsAtMost: 5_000,
  /** Event loop delay; above it, uncached requests are answered with 503. 0: no limit. */
  maxEventLoopDelayMs: 1_000,
  requestsPerMinute: 0,
  downloadsAtOnce: 16,
  /** Time for which `close()` waits for open answers. */
  drainMs: 10_000,
};

export type HttpLimits = Readonly<typeof DEFAULT_HTTP_LIMITS>;
