import { createServer } from 'node:net';

/**
 * Listens on a port for a moment and returns the port. Port 0 selects a free one.
 * @throws the system's error if the port is not available, even if its owner would share it
 */
export async function probePort(host: string, port: number): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once('error', reject);
    probe.listen({ host, port }, resolve);
  });
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : port;
}

/** Returns a free TCP port of 127.0.0.1. Another process may take it first, so the caller must be able to retry. */
export const freePort = (): Promise<number> => probePort('127.0.0.1', 0);
