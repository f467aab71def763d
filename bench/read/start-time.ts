/** Measures the time from the start of the process to its first answer. */
import { request } from 'node:http';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../src/processes/port.ts';
import { PROVIDER } from './fill.ts';
import { CLI, serveEnvironment } from './fleetbook.ts';
import { type ProgramOptions, spawnProgram, stop } from './program.ts';
import type { Scene } from './scene.ts';

export interface Starts {
  /** Milliseconds, one value a start. */
  readonly fleetbook: readonly number[];
  readonly fastify: readonly number[];
}

/** The minimum work of a program with Fastify before it can answer. */
const FASTIFY = `
import Fastify from 'fastify';
const app = Fastify();
app.get('/v1/machines', async () => []);
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
`;

export async function measureStarts(
  {
    databaseUrl,
    redisUrl,
    folder,
    filled,
    say,
  }: Pick<Scene, 'databaseUrl' | 'redisUrl' | 'folder' | 'filled' | 'say'>,
  times: number,
): Promise<Starts> {
  const found = { fleetbook: [] as number[], fastify: [] as number[] };
  const logFile = join(folder, 'starts.log');
  const path = `/v1/machines?provider=${PROVIDER}&region=${filled.small}`;
  // The first start of each reads the files from the disk.
  for (let start = 0; start <= times; start++) {
    say(`starts: ${start === 0 ? 'warming up' : `${start} of ${times}`}`);
    for (const server of ['fleetbook', 'fastify'] as const) {
      const port = await freePort();
      const env = {
        ...serveEnvironment({ DATABASE_URL: databaseUrl, REDIS_URL: redisUrl }, await freePort()),
        PORT: String(port),
      };
      const args = server === 'fleetbook' ? [CLI, 'serve'] : ['--input-type=module', '--eval', FASTIFY];
      const ms = await untilAnswer({ args, env, logFile }, port, path, filled.token);
      if (start > 0) found[server].push(ms);
    }
  }
  return found;
}

const PATIENCE_MS = 60_000;

async function untilAnswer(
  options: ProgramOptions,
  port: number,
  path: string,
  token: string,
): Promise<number> {
  const started = performance.now();
  const child = spawnProgram(options);
  child.once('error', () => {});
  try {
    while (performance.now() - started < PATIENCE_MS && child.exitCode === null) {
      if (await answers(port, path, token)) return performance.now() - started;
      await sleep(2);
    }
  } finally {
    await stop(child);
  }
  throw new Error(`no answer from ${options.args[0]}; see ${options.logFile}`);
}

function answers(port: number, path: string, token: string): Promise<boolean> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}`, connection: 'close' };
    const sent = request({ host: '127.0.0.1', port, path, headers }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode === 200));
    });
    sent.once('error', () => resolve(false));
    sent.end();
  });
}
