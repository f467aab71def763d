/** How long and how large a request, an answer and a connection may be. Durations in milliseconds. */
export interface HttpLimits {
  /** Bytes of the request line and the header fields together; beyond: 431. A path may be nearly as long. */
  readonly maxHeaderSize: number;
  /** From the connection, or the last answer's request, to the end of the header fields; beyond: 408. */
  readonly headersTimeoutMs: number;
  /** The same to the end of the whole request. */
  readonly requestTimeoutMs: number;
  /** How often these two are looked at. */
  readonly checkIntervalMs: number;
  /** For how long a connection may wait for its next request; longer than a load balancer keeps it. */
  readonly keepAliveTimeoutMs: number;
  /** For how long a client may take no byte of an answer; then its connection is cut. */
  readonly idleTimeoutMs: number;
  /** For how long a reader may take, beyond its own deadlines; then: 503. */
  readonly answerTimeoutMs: number;
  /** Open connections, half of them for one address; further ones are closed at once. 0: no limit. */
  readonly maxConnections: number;
  /** Idle time of a connection on which no token was accepted yet. */
  readonly strangerIdleMs: number;
  /** Streams of changes, and requests that wait for one, at once; beyond: 503. */
  readonly streamsAtMost: number;
  /** Milliseconds by which the event loop may be late before requests are refused, by 503, but for what memory holds. 0: no limit. */
  readonly maxEventLoopDelayMs: number;
  /** Requests a minute that one token may make of this process; beyond: 429. 0: no limit. */
  readonly requestsPerMinute: number;
  /** Downloads of files at once; beyond: 503. */
  readonly downloadsAtOnce: number;
  /** For how long `close()` waits for what is under way. */
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
