import { createServer } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { CommandFailure } from './failure.ts';

type Address = Pick<Settings, 'HOST' | 'PORT'>;

/**
 * @param shared the port may be listened on by several processes of ours (`canSharePort`)
 * @returns the port, which is another than PORT where that is 0
 * @throws CommandFailure that names the setting
 */
export async function listen(app: FastifyInstance, { HOST, PORT }: Address, shared = false): Promise<number> {
  try {
    await app.listen({ host: HOST, port: PORT, ...(shared ? { reusePort: true } : {}) });
  } catch (error) {
    throw listenFailure(error, PORT);
  }
  const address = app.server.address();
  return typeof address === 'object' && address ? address.port : PORT;
}

/**
 * Whether the kernel deals connections out to several listeners on one port (SO_REUSEPORT). What node:cluster does
 * instead elsewhere leaves a connection hanging that was on its way to a process that ends.
 */
export const canSharePort = process.platform === 'linux';

/** @throws CommandFailure when somebody listens there already, also one who would share the port with us */
export async function portIsFree({ HOST, PORT }: Address): Promise<void> {
  const problem = await new Promise<Error | undefined>((resolve) => {
    const probe = createServer();
    probe.once('error', resolve);
    probe.listen({ host: HOST, port: PORT }, () => probe.close(() => resolve(undefined)));
  });
  if (problem) throw listenFailure(problem, PORT);
}

function listenFailure(error: unknown, port: number): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    return new CommandFailure(`port ${port} is taken by another program; stop it, or choose another in PORT`);
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new CommandFailure('HOST is no address of this machine; use 127.0.0.1, or 0.0.0.0 for all');
  }
  if (code === 'EACCES') {
    return new CommandFailure(
      `port ${port} may not be used without privileges; choose one above 1023 in PORT`,
    );
  }
  return error;
}
