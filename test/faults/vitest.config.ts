/** `npm run test:faults`: every server breaks under load. It takes minutes and the machine for itself. */
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { shared } from '../../vitest.config.ts';

export default defineConfig({
  root: join(import.meta.dirname, '../..'),
  test: {
    ...shared,
    name: 'faults',
    include: ['test/faults/**/*.test.ts'],
    exclude: ['test/faults/*.tool.test.ts'],
    globalSetup: ['test/support/servers.ts', 'test/support/bundle.ts', 'test/faults/support/report.ts'],
    reporters: ['./test/support/reporter.ts'],
    fileParallelism: false,
    testTimeout: 300_000,
  },
});
