import { createServer } from 'node:net';

/**
 * Listens on a port for a moment.
 * @returns the port, which is another than `port` where that is 0
 * @throws the system's error when it cannot be listened on, also where its holder would share it with us
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

/**
 * A TCP port of 127.0.0.1 that is free at this moment. Another process may take it before it is used: a caller must be
 * ready to ask for another one.
 */
export const freePort = (): Promise<number> => probePort('127.0.0.1', 0);
