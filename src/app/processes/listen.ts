import type { FastifyInstance } from 'fastify';
import { CommandFailure } from '../../cli/terminal/failure.ts';
import type { Settings } from '../../config/settings.ts';
import { probePort } from '../../processes/port.ts';

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
    throw listenFailure(error, PORT, API);
  }
  const address = app.server.address();
  return typeof address === 'object' && address ? address.port : PORT;
}

/**
 * Whether the kernel deals connections out to several listeners on one port (SO_REUSEPORT). What node:cluster does
 * instead elsewhere leaves a connection hanging that was on its way to a process that ends.
 */
export const canSharePort = process.platform === 'linux';

/** What a listener's address is called in the settings. */
export interface Listener {
  readonly host: 'HOST' | 'OPS_HOST';
  readonly port: 'PORT' | 'OPS_PORT';
}
export const API: Listener = { host: 'HOST', port: 'PORT' };
export const OPS: Listener = { host: 'OPS_HOST', port: 'OPS_PORT' };

/** @throws CommandFailure that names the setting, when another program listens there, even if it would share the port */
export async function checkPortsAreFree(settings: Settings, listeners: readonly Listener[]): Promise<void> {
  for (const listener of listeners) {
    const port = settings[listener.port];
    await probePort(settings[listener.host], port).catch((error: unknown) => {
      throw listenFailure(error, port, listener);
    });
  }
}

/** What an operator is told of it; any other error as it is. */
export function listenFailure(error: unknown, port: number, named: Listener): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    const other = port < 65_000 ? port + 10 : port - 10;
    return new CommandFailure(
      `port ${port} is taken by another program; stop it, or choose another, e.g. ${named.port}=${other}`,
    );
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new CommandFailure(
      `${named.host} is no address of this machine; use 127.0.0.1, or 0.0.0.0 for all`,
    );
  }
  if (code === 'EACCES') {
    return new CommandFailure(
      `port ${port} may not be used without privileges; choose one above 1023 in ${named.port}`,
    );
  }
  return error;
}
