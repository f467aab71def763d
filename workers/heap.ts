/**
 * Node's options for a worker. The objects of a sync are short-lived, so a small young generation is enough. V8's default
 * of three times 32 MiB has no benefit. See docs/performance.md.
 */
export const WORKER_NODE_ARGS: readonly string[] = ['--max-semi-space-size=4'];
