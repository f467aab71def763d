/** An application that answers Fleetbook's API below /catalogue, next to its own routes. */

import { createReader } from '@fleetbook/fleetbook';
import Fastify from 'fastify';

const { DATABASE_URL = '', REDIS_URL = '', SNAPSHOT_DIR = '', PORT = '8080' } = process.env;

const app = Fastify({ logger: { level: 'warn' } });

const reader = createReader({
  databaseUrl: DATABASE_URL,
  cacheRedisUrl: REDIS_URL,
  snapshotDir: SNAPSHOT_DIR,
  limits: { memoryBytes: 64_000_000, postgresReads: 4 },
  logger: app.log,
});

await app.register(reader.plugin, { prefix: '/catalogue' });

app.get('/', async () => ({ shop: 'open' }));
app.get('/ready', async (_, reply) => {
  const { ready, checks } = await reader.readiness();
  return reply.code(ready ? 200 : 503).send(checks);
});

// Closes the reader too, after the last answer.
process.once('SIGTERM', () => void app.close());

// No server has to be up: /catalogue answers 503 until the catalogue can be read.
console.log(JSON.stringify({ url: await app.listen({ port: Number(PORT) }) }));
