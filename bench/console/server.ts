/**
 * The operators' listener as `work` opens it, without a worker that would run the sources: DATABASE_URL, REDIS_URL,
 * FLEETBOOK_CONFIG and OPS_TOKEN as usual. Reports its port to the process that started it.
 */
import { pino } from 'pino';
import { openLoggedRedis, queueRedis } from '../../src/app/connections.ts';
import { Disposer } from '../../src/app/disposer.ts';
import { listenOps, openParts } from '../../src/app/processes/ops.ts';
import { readConfig } from '../../src/config/config.ts';
import { databaseUrl } from '../../src/config/settings.ts';
import { openStore } from '../../src/db/connection/connect.ts';
import { reportReady } from '../../src/processes/ipc.ts';
import { openQueues, QUEUE_PREFIX } from '../../workers/queues.ts';

const logger = pino({ level: 'warn' }, pino.destination(2));
const config = readConfig(process.env);
const closing = new Disposer();
const store = closing.use(openStore({ url: databaseUrl(config), role: 'worker', connections: 2 }));
const redis = openLoggedRedis(queueRedis(config), 'producer', logger);
closing.defer(() => redis.disconnect());
const queues = openQueues(redis, QUEUE_PREFIX, logger);
closing.defer(() => Promise.all(queues.all.map((queue) => queue.close())));
const ops = { config, env: process.env, logger, closing, queues: queues.all };
const opened = await openParts({ ...ops, store });
const url = await listenOps(ops, async () => '', opened);
process.once('SIGTERM', () => void closing[Symbol.asyncDispose]().finally(() => process.exit(0)));
reportReady({ port: Number(new URL(url).port) });
