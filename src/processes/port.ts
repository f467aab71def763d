import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Listens for a moment. @throws the system's error if the port is taken, even if its owner would share it */
export async function probePort(host: string, port: number): Promise<void> {
  const probe = createServer();
  probe.listen({ host, port });
  await once(probe, 'listening');
  await once(probe.close(), 'close');
}

/** Below the ports that systems give to outgoing connections. A Redis Cluster uses the ports 10,000 above for its bus. */
const [LOWEST, HIGHEST] = [10_000, 19_999];

/**
 * Returns a free TCP port of 127.0.0.1. No outgoing connection takes it, so its owner may close it and listen on it again.
 * Another process may take it first, so the caller must be able to retry.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST + 1);
    try {
      await probePort('127.0.0.1', port);
      return port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}
