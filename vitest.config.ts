/**
 * A file's name chooses its layer. `npm test` runs `*.test.ts`. `npm run test:system` runs `*.system.test.ts`: programs, browsers,
 * engines, random searches, releases and tools. The folder `test/faults` is a run of its own (test/faults/vitest.config.ts), whose
 * system tests also run here, briefly. `*.tool.test.ts` test benchmarks and judges: CI runs them if one has changed, and every night.
 * Without `--project` all run.
 */
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longest-first.ts';

const SYSTEM = 'test/**/*.system.test.ts';
const TOOL = 'test/**/*.tool.test.ts';

export const shared = {
  // Tests start processes, which must see the death of the process that started them: no worker threads.
  pool: 'forks',
  // Files share the modules that a process has loaded: loading them for each file took a quarter of the time.
  isolate: false,
  setupFiles: 'test/support/random-seed.ts',
  // A test that hangs ends here. One that waits for many processes on a busy machine does not.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // One unlucky test of thousands must not cost a change. Each of them is named, and more than two files fail the run.
  retry: process.env.CI ? 1 : 0,
} as const;

/** Files wait for processes and servers for a part of their time, so there are more at a time than cores. */
const AT_ONCE = Math.max(5, availableParallelism() - 1);

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    teardownTimeout: 30_000,
    globalSetup: ['test/support/servers.ts'],
    reporters: ['./test/support/reporter.ts'],
    // Output of tests that passed is noise.
    silent: 'passed-only',
    projects: [
      {
        test: {
          ...shared,
          name: 'main',
          include: ['test/**/*.test.ts'],
          exclude: [SYSTEM, TOOL, 'test/faults/**'],
          maxWorkers: AT_ONCE,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...shared,
          name: 'system',
          maxWorkers: AT_ONCE,
          sequence: { groupOrder: 0 },
          include: [SYSTEM],
          exclude: ['test/containers/**', 'test/faults/**'],
          globalSetup: ['test/support/bundle.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'tools',
          maxWorkers: AT_ONCE,
          sequence: { groupOrder: 0 },
          include: [TOOL],
          globalSetup: ['test/support/bundle.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'system: containers',
          maxWorkers: AT_ONCE,
          sequence: { groupOrder: 0 },
          include: ['test/containers/**/*.test.ts'],
          globalSetup: ['test/containers/docker.ts'],
          hookTimeout: 300_000,
        },
      },
      {
        // Their answers have deadlines, so they run after all other tests.
        test: {
          ...shared,
          name: 'system: faults in brief',
          include: ['test/faults/**/*.system.test.ts'],
          globalSetup: ['test/support/bundle.ts', 'test/faults/support/report.ts'],
          env: {
            FAULTS_IN_BRIEF: '1',
            ORACLE_SECONDS: '5',
            FAULT_SECONDS: '3',
            FAULT_KILLS: '2',
            FAULT_OFFERS: '5000',
          },
          testTimeout: 300_000,
          // They wait for most of their time, but three at once are late on two cores.
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
