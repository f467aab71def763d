/** The time from a commit in Postgres until each reader returns the committed data. */
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from '../../src/db/connection/connect.ts';
import { type BenchPublisher, PROVIDER } from './fill.ts';
import { startFleetbook } from './fleetbook.ts';
import type { Scene } from './scene.ts';

export interface Coherence {
  readonly readers: number;
  /** Milliseconds of each change, from the commit to the last of the readers. */
  readonly delays: readonly number[];
  /** Answers, on one connection, that were older than an earlier one. */
  readonly older: number;
}

const READERS = 3;
/** Milliseconds between two reads of one connection. */
const EVERY_MS = 2;
const PATIENCE_MS = 10_000;

export async function measureCoherence(
  { databaseUrl, redisUrl, folder, filled, say }: Scene,
  sql: Sql,
  publisher: BenchPublisher,
  changes: number,
): Promise<Coherence> {
  await using opened = new AsyncDisposableStack();
  const watchers: Watcher[] = [];
  const path = `/v1/machines?provider=${PROVIDER}&region=${filled.small}`;
  for (let reader = 0; reader < READERS; reader++) {
    const fleetbook = opened.use(
      await startFleetbook({
        env: { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl },
        logFile: join(folder, 'readers.log'),
        core: 'any',
      }),
    );
    const watcher = new Watcher(fleetbook.port, path, filled.token);
    opened.defer(() => watcher.close());
    watchers.push(watcher);
  }
  for (const watcher of watchers) await watcher.memory();

  const change = async (): Promise<number> => {
    const price = await reprice(sql, filled.small, filled.machine);
    const committed = performance.now();
    const publishing = publisher.publish();
    const seen = await Promise.all(watchers.map((watcher) => watcher.until(price)));
    await publishing;
    return Math.max(...seen) - committed;
  };
  const delays: number[] = [];
  say(`coherence: ${changes} changes, ${READERS} readers`);
  for (let i = 0; i < changes; i++) delays.push(await change());
  const older = watchers.reduce((sum, watcher) => sum + watcher.older, 0);
  return { readers: READERS, delays, older };
}

let repriced = 0;

/** Like a sync: the row and the version in one statement. Prices only rise, so that an older answer is detectable. */
async function reprice(sql: Sql, regionId: number, machineId: number): Promise<number> {
  repriced += 1;
  const price = 1 + repriced / 1000;
  await sql`
    with changed as (update machines set price = ${String(price)} where id = ${machineId})
    update regions set version = version + 1 where id = ${regionId}`;
  return price;
}

/** Reads from one reader over one connection. */
class Watcher {
  readonly #port: number;
  readonly #path: string;
  readonly #headers: Record<string, string>;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #newest = 0;
  older = 0;

  constructor(port: number, path: string, token: string) {
    this.#port = port;
    this.#path = path;
    this.#headers = { authorization: `Bearer ${token}` };
  }

  /** Resolves with the time (ms) of the first answer with this price. @throws Error if there is none */
  async until(price: number): Promise<number> {
    const started = performance.now();
    while (performance.now() - started < PATIENCE_MS) {
      const { highest } = await this.#read();
      if (highest >= price) return performance.now();
      await sleep(EVERY_MS);
    }
    throw new Error(`a reader did not show a change within ${PATIENCE_MS} ms`);
  }

  /** Resolves once memory answers. */
  async memory(): Promise<void> {
    for (const until = Date.now() + PATIENCE_MS; Date.now() < until; await sleep(EVERY_MS)) {
      if ((await this.#read()).tier === 'memory') return;
    }
    throw new Error('a reader never answered from memory');
  }

  close(): void {
    this.#agent.destroy();
  }

  #read(): Promise<{ highest: number; tier: string }> {
    return new Promise((resolve, reject) => {
      const sent = request(
        { host: '127.0.0.1', port: this.#port, path: this.#path, headers: this.#headers, agent: this.#agent },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.once('error', reject);
          response.once('end', () => {
            const list = JSON.parse(Buffer.concat(chunks).toString()) as { price: number }[];
            const highest = Math.max(...list.map(({ price }) => price));
            if (highest < this.#newest) this.older += 1;
            this.#newest = Math.max(this.#newest, highest);
            resolve({ highest, tier: String(response.headers['fleetbook-tier']) });
          });
        },
      );
      sent.once('error', reject);
      sent.end();
    });
  }
}
