import { inject, TestRunner } from 'vitest';

const NO_NAME = /(?!)/;

/** Without a Docker engine, collects and skips each test, so that the report has its name. No hook runs. */
export default class ContainerRunner extends TestRunner {
  onBeforeCollect(): void {
    if (!inject('docker')) this.config.testNamePattern = NO_NAME;
  }
}
