import type { FastifyInstance } from 'fastify';
import { CommandFailure } from '../../cli/terminal/failure.ts';
import type { Settings } from '../../config/settings.ts';
import { probePort } from '../../processes/port.ts';

type Address = Pick<Settings, 'HOST' | 'PORT'>;

/** Returns the port. @param shared several processes listen on it @throws CommandFailure that names the setting */
export async function listen(app: FastifyInstance, { HOST, PORT }: Address, shared = false): Promise<number> {
  try {
    await app.listen({ host: HOST, port: PORT, ...(shared ? { reusePort: true } : {}) });
  } catch (error) {
    throw listenFailure(error, PORT, API);
  }
  const address = app.server.address();
  return typeof address === 'object' && address ? address.port : PORT;
}

/** Whether the kernel distributes connections (SO_REUSEPORT). node:cluster would lose those of a process that ends. */
export const canSharePort = process.platform === 'linux';

export interface Listener {
  readonly host: 'HOST' | 'OPS_HOST';
  readonly port: 'PORT' | 'OPS_PORT';
}
export const API: Listener = { host: 'HOST', port: 'PORT' };
export const OPS: Listener = { host: 'OPS_HOST', port: 'OPS_PORT' };

/** Returns the host of a URL that reaches a listener from this machine. */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/** @throws CommandFailure that names the setting of each port on which another program listens, even one that shares the port */
export async function checkPortsAreFree(settings: Settings, listeners: readonly Listener[]): Promise<void> {
  const failures: CommandFailure[] = [];
  for (const listener of listeners) {
    const port = settings[listener.port];
    await probePort(settings[listener.host], port).catch((error: unknown) => {
      const failure = listenFailure(error, port, listener);
      if (!(failure instanceof CommandFailure)) throw failure;
      failures.push(failure);
    });
  }
  const messages = new Set(failures.map(({ message }) => message));
  if (messages.size > 0) throw new CommandFailure([...messages].join('\n'));
}

/** Returns a CommandFailure that names the setting and a fix, or an unknown error itself. */
export function listenFailure(error: unknown, port: number, named: Listener): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    const other = port < 65_000 ? port + 10 : port - 10;
    return new CommandFailure(
      `port ${port} is used by another program; stop that program, or set another port, e.g. ${named.port}=${other}`,
    );
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new CommandFailure(
      `${named.host} is not an address of this machine; use 127.0.0.1, or 0.0.0.0 for all`,
    );
  }
  if (code === 'EACCES') {
    return new CommandFailure(`port ${port} needs privileges; set ${named.port} to a port above 1023`);
  }
  return error;
}
