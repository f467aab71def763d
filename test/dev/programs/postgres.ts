/** Starts an embedded server on the folder in its argument, prints its address, and runs until SIGTERM. */
import { startEmbeddedPostgres } from '../../../src/dev/postgres.ts';

const [dataDir = ''] = process.argv.slice(2);
const server = await startEmbeddedPostgres({ dataDir, durable: false });
process.stdout.write(`${JSON.stringify({ url: server.url, pid: server.pid })}\n`);
process.once('SIGTERM', () => void server.stop());
