import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { FleetbookClient } from '../../client/src/index.ts';
import { mcpServer } from './server.ts';

/** An environment variable is missing or invalid. */
export class BadEnvironment extends Error {}

export interface ServeOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The server's version in the protocol's handshake. */
  readonly version: string;
  /** Resolves when the process must end. */
  readonly stopped: Promise<unknown>;
  /** Writes a log line. Must not write to standard output. */
  readonly log: (line: string) => void;
}

/**
 * Serves the tools over standard input and output until the input ends. Standard output carries protocol messages only.
 * @throws BadEnvironment that names the variable
 */
export async function serveTools({ env, version, stopped, log }: ServeOptions): Promise<void> {
  const { FLEETBOOK_URL: url, FLEETBOOK_TOKEN: token } = env;
  if (!url || !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new BadEnvironment(
      'FLEETBOOK_URL must be the address of the API, e.g. https://fleetbook.example.com',
    );
  if (!token)
    throw new BadEnvironment('FLEETBOOK_TOKEN is not set; `fleetbook token create` creates a token');
  const client = new FleetbookClient({ url, token });
  const failed = (error: unknown) =>
    log(`fleetbook-mcp: ${error instanceof Error ? error.message : String(error)}`);
  const ended = Promise.withResolvers<void>();
  process.stdin.once('end', ended.resolve).once('close', ended.resolve);
  const serving = serveStdio(() => mcpServer({ client, url, version, failed }), { onerror: failed });
  await Promise.race([ended.promise, stopped]);
  await serving.close();
}
