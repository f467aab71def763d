import { inject, TestRunner } from 'vitest';

const NO_NAME = /(?!)/;

/** Without a Docker engine every test is collected and then skipped, so that the report has its name; no hook runs. */
export default class ContainerRunner extends TestRunner {
  onBeforeCollect(): void {
    if (!inject('docker')) this.config.testNamePattern = NO_NAME;
  }
}
