/** The package's public API: `import { createReader } from '@fleetbook/fleetbook'`. See docs/embedding.md. */
export { createReader, type EmbeddedReader } from './app/embedded.ts';
export type { ReaderLimits, ReaderOptions } from './app/embedded-options.ts';
