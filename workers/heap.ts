/** A sync's objects are short-lived: a small young generation is enough. See docs/performance.md. */
export const WORKER_NODE_ARGS: readonly string[] = ['--max-semi-space-size=4'];
