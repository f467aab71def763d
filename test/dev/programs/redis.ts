/** Starts a private Redis, prints its process id, and runs until it is ended. */
import { findRedisServer, startRedis } from '../../../src/dev/redis.ts';

const binary = findRedisServer();
if (!binary) throw new Error('no Redis server');
const server = await startRedis({ binary });
process.stdout.write(`${JSON.stringify({ pid: server.pid })}\n`);
process.once('SIGTERM', () => void server.stop());
