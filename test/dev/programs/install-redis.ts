/** Acquires a Redis server with only the programs of the folder in its argument, and prints its path. */
import { acquireRedisServer } from '../../../src/dev/install-redis.ts';

const [path = ''] = process.argv.slice(2);
try {
  process.stdout.write(`${JSON.stringify(await acquireRedisServer({ path }))}\n`);
} catch (error) {
  process.stdout.write(
    `${JSON.stringify({ error: error instanceof Error ? error.message : String(error) })}\n`,
  );
}
