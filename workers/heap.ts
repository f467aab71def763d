/**
 * How a worker's Node is started. What a sync makes is gone in a moment, so that its young generation needs no more than
 * this; V8 would let it grow to three times 32 MiB for nothing. See docs/performance.md.
 */
export const WORKER_NODE_ARGS: readonly string[] = ['--max-semi-space-size=4'];
