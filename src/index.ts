/** What a program gets that depends on this package: `import { createReader } from 'fleetbook'`. See docs/embedding.md. */
export { createReader, type EmbeddedReader } from './app/embedded.ts';
export type { ReaderLimits, ReaderOptions } from './app/embedded-options.ts';
