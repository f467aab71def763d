import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { QUICK, quickFiles } from './test/support/quick.ts';
import { SlowestFirst } from './test/support/slowest-first.ts';
import { STOCK_POSTGRES, TEST_POSTGRES } from './test/support/stock-postgres-setting.ts';

const shared = {
  // Tests start processes, which must see the death of the process that started them: no worker threads.
  pool: 'forks',
  // Files share the modules that a process has loaded: loading them for each file took a quarter of the time.
  isolate: false,
  // A test that hangs ends here. One that waits for many processes on a busy machine does not.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // One unlucky test of thousands must not cost a change. Each that needed it is named, see test/run.ts.
  retry: process.env.CI ? 1 : 0,
} as const;

const quick = { ...shared, name: 'quick', include: [...quickFiles().quick] };

/** Set where only the fault suite is to run, which takes minutes and the machine for itself. */
const FAULTS = 'FLEETBOOK_TEST_FAULTS';
const faults = {
  ...shared,
  name: 'faults',
  include: ['test/faults/**/*.test.ts'],
  globalSetup: ['test/faults/support/report.ts'],
  fileParallelism: false,
  testTimeout: 300_000,
  hookTimeout: 120_000,
};

/** Random histories for ten seconds, which CI runs among the other tests: no answer may be wrong on a busy machine either. */
const oracleOfCi = {
  ...faults,
  name: 'oracle in brief',
  include: ['test/faults/oracle.system.test.ts'],
  env: { ORACLE_SECONDS: '10' },
  fileParallelism: true,
};

/** A short fault of each kind, which CI runs after all other tests: their answers have deadlines. */
const faultsOfCi = {
  ...faults,
  name: 'faults in brief',
  include: ['cache-killed', 'postgres-hung', 'worker-killed-at-random'].map(
    (name) => `test/faults/${name}.system.test.ts`,
  ),
  env: { FAULT_SECONDS: '3', FAULT_KILLS: '3', FAULT_OFFERS: '10000' },
  fileParallelism: true,
  // They wait for most of their time, but three at once are late on two cores.
  maxWorkers: 2,
  sequence: { groupOrder: 1 },
};

/**
 * The folders whose tests are about statements. With a stock PostgreSQL they run there, and not on the embedded one: no test
 * runs twice.
 */
const ABOUT_STATEMENTS = ['db', 'features', 'ops', 'snapshot', 'sync'].map(
  (name) => `test/${name}/**/*.test.ts`,
);
const hasStock = Boolean(process.env[STOCK_POSTGRES]);
const ALL = ['test/**/*.test.ts'];
/** These have separate servers. */
const OTHERS = ['test/containers/**', 'test/faults/**'];
const isAllOnStock = hasStock && process.env[TEST_POSTGRES] === 'stock';

export default defineConfig({
  test: {
    // Tests wait for processes and servers for a third of their time: four at a time, also on two cores.
    maxWorkers: Math.max(4, availableParallelism() - 1),
    teardownTimeout: 30_000,
    sequence: { sequencer: SlowestFirst },
    projects: process.env[QUICK]
      ? [{ test: quick }]
      : process.env[FAULTS]
        ? [{ test: faults }]
        : [
            {
              test: {
                ...shared,
                name: 'main',
                include: ALL,
                exclude: [...OTHERS, ...(isAllOnStock ? ALL : hasStock ? ABOUT_STATEMENTS : [])],
                globalSetup: ['test/support/postgres-server.ts'],
              },
            },
            ...(hasStock
              ? [
                  {
                    test: {
                      ...shared,
                      name: 'stock PostgreSQL',
                      include: isAllOnStock ? ALL : ABOUT_STATEMENTS,
                      exclude: OTHERS,
                      globalSetup: ['test/support/stock-postgres.ts'],
                    },
                  },
                ]
              : []),
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
            ...(process.env.CI ? [{ test: oracleOfCi }, { test: faultsOfCi }] : []),
          ],
  },
});
