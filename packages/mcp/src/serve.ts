import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { FleetbookClient } from '../../client/src/index.ts';
import { mcpServer } from './server.ts';

/** A variable of the environment is missing or wrong. */
export class BadEnvironment extends Error {}

export interface ServeOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** For the protocol's greeting. */
  readonly version: string;
  /** Resolves when the process has to end. */
  readonly stopped: Promise<unknown>;
  /** Writes a line that is no message of the protocol. */
  readonly log: (line: string) => void;
}

/**
 * Offers the tools over standard input and output until the input ends. Standard output carries the protocol alone.
 * @throws BadEnvironment that names the variable
 */
export async function serveTools({ env, version, stopped, log }: ServeOptions): Promise<void> {
  const { FLEETBOOK_URL: url, FLEETBOOK_TOKEN: token } = env;
  if (!url || !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new BadEnvironment('FLEETBOOK_URL must be where the API is, such as https://fleetbook.example.com');
  if (!token) throw new BadEnvironment('FLEETBOOK_TOKEN is not set; `fleetbook token create` makes a token');
  const client = new FleetbookClient({ url, token });
  const failed = (error: unknown) =>
    log(`fleetbook mcp: ${error instanceof Error ? error.message : String(error)}`);
  const ended = Promise.withResolvers<void>();
  process.stdin.once('end', ended.resolve).once('close', ended.resolve);
  const serving = serveStdio(() => mcpServer({ client, url, version, failed }), { onerror: failed });
  await Promise.race([ended.promise, stopped]);
  await serving.close();
}
