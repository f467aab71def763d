import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { FleetbookClient } from '../client/index.ts';
import { VERSION } from '../config/package.ts';
import type { Environment } from '../config/source-config.ts';
import { mcpServer } from '../mcp/server.ts';
import { UsageFailure } from './failure.ts';
import { printAside } from './print.ts';
import { stopSignal } from './terminal.ts';

/**
 * Offers the API's data to a language model, over standard input and output, until the input ends. Nothing but the
 * protocol is written to standard output.
 * @throws UsageFailure that names the setting that is missing or wrong
 */
export async function mcp(env: Environment): Promise<void> {
  const { FLEETBOOK_URL: url, FLEETBOOK_TOKEN: token } = env;
  if (!url || !/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new UsageFailure('FLEETBOOK_URL must be where the API is, such as https://fleetbook.example.com');
  if (!token) throw new UsageFailure('FLEETBOOK_TOKEN is not set; `fleetbook token create` makes a token');
  const client = new FleetbookClient({ url, token });
  const failed = (error: unknown) =>
    printAside(`fleetbook mcp: ${error instanceof Error ? error.message : String(error)}`);
  const ended = Promise.withResolvers<void>();
  process.stdin.once('end', ended.resolve).once('close', ended.resolve);
  const serving = serveStdio(() => mcpServer({ client, url, version: VERSION, failed }), { onerror: failed });
  await Promise.race([ended.promise, stopSignal()]);
  await serving.close();
}
