/** Checks at the start of readers and workers that PostgreSQL fits its settings. */
import type { Logger } from 'pino';
import { BadSetting, type Configured, databaseUrls } from '../config/settings.ts';
import { openStore, type Store } from '../db/connection/connect.ts';
import type { ServerSetting } from '../db/connection/server-problem.ts';
import { checkPooler, checkReader, checkWriter, postgresFacts } from '../db/connection/server-problem.ts';
import type { Replica } from '../features/replica/replica.ts';

const RETRY_MS = 1000;

/** @throws BadSetting if it cannot be written to. An undeclared pooler only causes a warning: session mode works. */
export async function refuseUnsuitableWriter(
  store: Pick<Store, 'db'>,
  config: Configured,
  logger: Logger,
): Promise<void> {
  const { url, directUrl } = databaseUrls(config);
  await check(store.db, { setting: 'DATABASE_URL', url });
  if (directUrl === url) return;
  await using direct = openStore({ url: directUrl, role: 'worker', connections: 1 });
  await check(direct.db, { setting: 'DIRECT_DATABASE_URL', url: directUrl });

  async function check(db: Store['db'], server: ServerSetting): Promise<void> {
    const facts = await postgresFacts(db);
    const problem = checkWriter(facts, server);
    if (problem) throw new BadSetting(`${server.setting} cannot be used: ${problem.what}; ${problem.remedy}`);
    const pooler = checkPooler(facts, server);
    if (pooler) logger.warn(`${server.setting}: ${pooler.what}; ${pooler.remedy}`);
  }
}

/**
 * Checks at the start and after each lost connection. A reader starts even so: memory and Redis may answer.
 * @param replica is set if readers also read the primary
 */
export function watchReaderDatabase(
  store: Store,
  server: ServerSetting,
  replica: Pick<Replica, 'problem'> | undefined,
  logger: Logger,
): Disposable {
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let logged: string | undefined;
  const checkAgain = () => {
    if (!isOver) timer ??= setTimeout(check, RETRY_MS).unref();
  };
  async function check(): Promise<void> {
    timer = undefined;
    try {
      const facts = await postgresFacts(store.db);
      const problem = checkReader(facts, server, replica !== undefined) ?? checkPooler(facts, server);
      const why = problem
        ? `${server.setting}: ${problem.what}; ${problem.remedy}`
        : await replica?.problem();
      if (why !== undefined && why !== logged) logger.error(why);
      logged = why;
    } catch {
      // The reads log that it does not answer.
      checkAgain();
    }
  }
  store.onLost(checkAgain);
  void check();
  return {
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
