/**
 * What HTTP names. Not by `import`: that evaluates every getter of `node:http`, of which one loads all of undici, a
 * tenth of a reader's start.
 */
export const { METHODS, STATUS_CODES } = process.getBuiltinModule('node:http');
