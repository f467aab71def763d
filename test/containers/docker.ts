/** Global set-up of the container tests: detects a Docker engine as Testcontainers does, and pulls the images of servers. */
import { getContainerRuntimeClient, ImageName } from 'testcontainers';
import type { TestProject } from 'vitest/node';
import { POSTGRES_IMAGE, REDIS_IMAGE } from './images.ts';

declare module 'vitest' {
  interface ProvidedContext {
    docker: boolean;
  }
}

export default async function setUp(project: TestProject): Promise<void> {
  const problem = await openEngine();
  if (problem !== undefined) process.stderr.write(`${problem}: the tests in test/containers are skipped\n`);
  project.provide('docker', problem === undefined);
}

/** Returns why containers cannot start; undefined if they can. */
async function openEngine(): Promise<string | undefined> {
  const client = await getContainerRuntimeClient().catch(() => undefined);
  if (!client) return 'no Docker engine answers';
  for (const image of [POSTGRES_IMAGE, REDIS_IMAGE]) {
    try {
      // It does nothing for an image that the engine has.
      await client.image.pull(ImageName.fromString(image));
    } catch (error) {
      return `the Docker engine has no image ${image}, and cannot pull it (${String(error)})`;
    }
  }
  return undefined;
}
