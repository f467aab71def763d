/** The compared servers, each in a separate process. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Answer, stored } from './capture.ts';
import { findNginx, startNginx } from './nginx.ts';
import { type Program, startProgram } from './program.ts';
import type { Scene } from './scene.ts';
import type { Server } from './targets.ts';

export interface Peers extends AsyncDisposable {
  readonly barePid: number;
  /** Undefined if there is no such server. */
  portOf(server: Exclude<Server, 'fleetbook'>, targetId: string): number | undefined;
}

/** @param answers Fleetbook's answers, by the target's id */
export async function startPeers(scene: Scene, answers: Readonly<Record<string, Answer>>): Promise<Peers> {
  const { databaseUrl, redisUrl, filled, folder } = scene;
  await using opened = new AsyncDisposableStack();
  const logFile = join(folder, 'servers.log');
  const start = async (name: string, env: Record<string, string>) =>
    opened.use(await startProgram({ args: [join(import.meta.dirname, 'programs', name)], env, logFile }));

  const all = Object.entries(answers);
  const bare = opened.use(await startBare(folder, answers));
  await fillPlainRedis(scene, answers);
  const redis = await start('fastify-redis.ts', { REDIS_URL: redisUrl });
  const drizzle = await start('fastify-drizzle.ts', {
    DATABASE_URL: databaseUrl,
    ORGANIZATION: String(filled.organization),
  });
  const binary = findNginx();
  const files = Object.fromEntries(all.filter(([, { status }]) => status === 200));
  const nginx = binary === undefined ? undefined : opened.use(await startNginx(binary, folder, files));

  const closing = opened.move();
  return {
    barePid: bare.pid,
    portOf(server, targetId) {
      if (server === 'bare') return Number(bare.details[targetId]);
      if (server === 'nginx') return nginx?.ports[targetId];
      return Number((server === 'redis' ? redis : drizzle).details.port);
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** The port of each answer is in the details, by its id. @param core that of the load measures the load itself @param args of Node */
export async function startBare(
  folder: string,
  answers: Readonly<Record<string, Answer>>,
  core: 'server' | 'load' = 'server',
  args: readonly string[] = [],
): Promise<Program> {
  const file = join(folder, 'answers.json');
  const all = Object.entries(answers).map(([id, answer]) => [id, stored(answer)]);
  await writeFile(file, JSON.stringify(Object.fromEntries(all)));
  const script = [join(import.meta.dirname, 'programs/bare.ts'), file];
  return startProgram({ args: [...args, ...script], logFile: join(folder, 'servers.log'), core });
}

async function fillPlainRedis(
  { redis, filled: { small, large, machine, slug } }: Scene,
  answers: Readonly<Record<string, Answer>>,
): Promise<void> {
  const keys: Record<string, Answer | undefined> = {
    [`plain:machines:${small}`]: answers.list,
    [`plain:machines:${large}`]: answers['long-list'],
    [`plain:machine:${machine}`]: answers.machine,
    'plain:clusters': answers.clusters,
    [`plain:cluster:${slug}`]: answers.cluster,
  };
  for (const [key, answer] of Object.entries(keys)) await redis.set(key, answer?.body ?? '');
}
