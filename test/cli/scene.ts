import { openScene, type Scene } from '../snapshot/scene.ts';
import { startTestRedis } from '../support/redis.ts';

export interface CommandScene extends AsyncDisposable {
  readonly scene: Scene;
  /** The environment with which commands reach the servers. */
  readonly env: Record<string, string>;
}

/** Servers with an empty database for commands, and readers that see the effects. */
export async function openCommandScene(): Promise<CommandScene> {
  await using opening = new AsyncDisposableStack();
  const redis = opening.use(await startTestRedis());
  const scene = opening.use(await openScene(redis));
  const opened = opening.move();
  return {
    scene,
    env: { DATABASE_URL: scene.db.url, REDIS_URL: redis.url },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
