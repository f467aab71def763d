/** Global set-up of the container tests: detects a Docker engine as Testcontainers does. */
import { getContainerRuntimeClient } from 'testcontainers';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    docker: boolean;
  }
}

export default async function setUp(project: TestProject): Promise<void> {
  const docker = await getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
  if (!docker) process.stderr.write('no Docker engine answers: the tests in test/containers are skipped\n');
  project.provide('docker', docker);
}
