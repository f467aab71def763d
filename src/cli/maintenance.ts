/** Commands that check and maintain a deployment. */
import type { Command } from 'commander';
import { databaseUrls } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import { audit } from '../db/audit.ts';
import { describeDatabase } from '../db/connection/server-problem.ts';
import { decider } from './terminal/arguments.ts';
import { add, addChange, type Changing, type Env } from './terminal/command-parts.ts';
import { openWriter, restoredTokensMessage } from './terminal/open.ts';
import { print, printAside, printJson, printText } from './terminal/print.ts';
import { count, wrapped } from './terminal/table.ts';

/** Milliseconds until the cache must answer. */
const CACHE_WITHIN_MS = 5000;

export function define(program: Command, env: Env): void {
  addChange(program, 'migrate', 'apply the migrations of this release to the database').action((options) =>
    migrateCommand(env(), options),
  );
  addChange(program, 'publish', 'compare the cache with the database and publish the differences').action(
    (options) => publishCommand(env(), options),
  );
  add(
    program,
    'doctor',
    'check configuration, servers, ports and sources; print fixes; exit 1 on a problem',
  ).action(async (options) => (await import('./doctor.ts')).doctorCommand(env(), options));
  addChange(
    program,
    'restored',
    'after a restore of the database: republish everything and run every source again',
  ).action((options) => restoredCommand(env(), options));
}

async function migrateCommand(env: Environment, options: Changing): Promise<void> {
  const [{ readConfig }, { FEATURE_CONFIG }, { migrate }] = await Promise.all([
    import('../config/config.ts'),
    import('../app/features.ts'),
    import('../db/migration/migrate.ts'),
  ]);
  const config = readConfig(env, FEATURE_CONFIG);
  const { directUrl: url } = databaseUrls(config);
  const { applied, isLater } = await migrate(url, {
    decider: decider(config, options),
    notify: (line) => printAside(`fleetbook: ${line}`),
  });
  const where = describeDatabase(url);
  if (options.json) printJson({ migrated: true, applied, isLater, database: where });
  else if (isLater) print(`${where} has migrations of a later release: nothing was done; update Fleetbook`);
  else if (applied.length === 0) print(`${where} is up to date: nothing to do`);
  else {
    const names = applied.join(', ');
    printText(wrapped(`${where}: applied ${count(applied.length, 'migration')}: ${names}`, 80));
  }
}

async function publishCommand(env: Environment, options: Changing): Promise<void> {
  await using writer = await openWriter(env, options);
  await cacheReady(writer.cache);
  // No transaction spans the cache. The row is written first, so that every publication has one.
  await audit(writer.store.db, writer.by, {
    action: 'cache.publish',
    subject: { kind: 'cache', id: 'all' },
  });
  const dirty = await writer.publisher.publishDirty();
  const repaired = await writer.publisher.compare();
  const total = dirty.published + repaired.published;
  if (options.json) printJson({ published: total });
  else print(total === 0 ? 'the cache equals the database' : `published ${total} documents`);
}

/** Gives the database a new lineage, and publishes everything under it. */
async function restoredCommand(env: Environment, options: Changing): Promise<void> {
  // The result names the tokens.
  await using writer = await openWriter(env, options, () => {});
  await cacheReady(writer.cache);
  const why = 'an operator says that a backup was restored';
  const { published, lineage } = await writer.publisher.restored(why, writer.by);
  if (options.json) {
    const { id = null, revokedAgain = [], forgotten = [] } = lineage ?? {};
    return printJson({ lineage: id, published, revokedAgain, forgotten });
  }
  const lines = lineage
    ? [
        `the database has a new lineage; ${published} documents are published again`,
        ...restoredTokensMessage(lineage),
      ]
    : ['another process has just given the database a new lineage, and publishes everything again'];
  for (const line of lines) print(line);
  print('workers run every source again within a minute. Check the tokens: fleetbook token list');
}

const cacheReady = async (cache: Awaited<ReturnType<typeof openWriter>>['cache']) =>
  (await import('../redis/redis.ts')).redisReady(cache, CACHE_WITHIN_MS);
