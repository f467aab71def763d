import { createServer } from 'node:net';

/**
 * A TCP port of 127.0.0.1 that nobody listens on at this moment. Somebody else may take it before it is used:
 * whoever starts a server on it must be ready to ask for another one.
 */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen({ port: 0, host: '127.0.0.1' }, () => {
      const address = probe.address();
      probe.close(() => {
        if (address !== null && typeof address === 'object') resolve(address.port);
        else reject(new Error('the system gave no port on 127.0.0.1'));
      });
    });
  });
}
