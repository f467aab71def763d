import { defineConfig } from 'vitest/config';

const shared = {
  // Tests start processes, which must see the death of the process that started them: no worker threads.
  pool: 'forks',
  testTimeout: 30_000,
  hookTimeout: 60_000,
} as const;

export default defineConfig({
  test: {
    teardownTimeout: 30_000,
    projects: [
      {
        test: {
          ...shared,
          name: 'main',
          include: ['test/**/*.test.ts'],
          exclude: ['test/containers/**'],
          globalSetup: ['test/support/postgres-server.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'containers',
          include: ['test/containers/**/*.test.ts'],
          globalSetup: ['test/support/docker.ts'],
          runner: 'test/support/container-runner.ts',
          testTimeout: 120_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
