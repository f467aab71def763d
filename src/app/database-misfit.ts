/** Whether PostgreSQL is what its settings take it for, looked at when readers and workers start. */
import type { Logger } from 'pino';
import { BadSetting, type Configured, databaseUrls } from '../config/settings.ts';
import { openStore, type Store } from '../db/connection/connect.ts';
import { poolerMisfit, postgresFacts, readerMisfit, writerMisfit } from '../db/connection/postgres-misfit.ts';
import type { ServerSetting } from '../db/connection/server-problem.ts';
import type { ReplicaPart } from './feature.ts';

/** Milliseconds until a server that did not answer is looked at again. */
const AGAIN_MS = 1000;

/**
 * Looks at what a worker writes to. A pooler that nobody has told of is only warned of: one whose sessions are sessions
 * would do.
 * @throws BadSetting where it cannot be written to, or what PostgreSQL fails with
 */
export async function refuseWriterMisfit(
  store: Pick<Store, 'sql'>,
  config: Configured,
  logger: Logger,
): Promise<void> {
  const { url, directUrl } = databaseUrls(config);
  await look(store.sql, { setting: 'DATABASE_URL', url });
  if (directUrl === url) return;
  await using direct = openStore({ url: directUrl, role: 'worker', connections: 1 });
  await look(direct.sql, { setting: 'DIRECT_DATABASE_URL', url: directUrl });

  async function look(sql: Store['sql'], server: ServerSetting): Promise<void> {
    const facts = await postgresFacts(sql);
    const misfit = writerMisfit(facts, server);
    if (misfit) throw new BadSetting(`${server.setting} cannot be used: ${misfit.what}; ${misfit.remedy}`);
    const pooler = poolerMisfit(facts, server);
    if (pooler) logger.warn(`${server.setting}: ${pooler.what}; ${pooler.remedy}`);
  }
}

export interface ReaderDatabase {
  readonly store: Store;
  readonly server: ServerSetting;
  /** Set if another server is read for what this one lacks. */
  readonly replica: Pick<ReplicaPart, 'misfit'> | undefined;
  readonly logger: Logger;
}

/**
 * Looks in the background at what a reader reads, as soon as it answers and after each loss of its connections, and logs
 * what does not fit, once. A reader starts whatever it is: memory and Redis may answer.
 */
export function tellReaderMisfit({ store, server, replica, logger }: ReaderDatabase): Disposable {
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let told: string | undefined;
  const lookAgain = () => {
    if (!isOver) timer ??= setTimeout(look, AGAIN_MS).unref();
  };
  async function look(): Promise<void> {
    timer = undefined;
    try {
      const facts = await postgresFacts(store.sql);
      const misfit = readerMisfit(facts, server, replica !== undefined) ?? poolerMisfit(facts, server);
      const why = misfit ? `${server.setting}: ${misfit.what}; ${misfit.remedy}` : await replica?.misfit();
      if (why !== undefined && why !== told) logger.error(why);
      told = why;
    } catch {
      // That it does not answer is told by whoever reads.
      lookAgain();
    }
  }
  store.onLost(lookAgain);
  void look();
  return {
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
