import type { Command } from 'commander';
import type { CommandContext } from '../app/feature.ts';
import { FEATURE_CONFIG } from '../app/feature-config.ts';
import { readConfig } from '../config/config.ts';
import { databaseUrls } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import { audit } from '../db/audit.ts';
import { describeDatabase } from '../db/connection/server-problem.ts';
import { migrate } from '../db/migration/migrate.ts';
import { redisReady } from '../redis/redis.ts';
import { openWriter, restoredTokensMessage } from './terminal/open.ts';
import { add, addChange, type Changing, decider } from './terminal/options.ts';
import { count, printAside, show, wrapped } from './terminal/output.ts';

const CACHE_WITHIN_MS = 5000;

export function define(program: Command, { env }: CommandContext): void {
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
  const config = readConfig(env, FEATURE_CONFIG);
  const { directUrl: url } = databaseUrls(config);
  const { applied, isLater } = await migrate(url, {
    decider: decider(config, options),
    notify: (line) => printAside(`fleetbook: ${line}`),
  });
  const where = describeDatabase(url);
  show(options, { migrated: true, applied, isLater, database: where }, () => {
    if (isLater) return `${where} has migrations of a later release: nothing was done; update Fleetbook`;
    if (applied.length === 0) return `${where} is up to date: nothing to do`;
    return wrapped(`${where}: applied ${count(applied.length, 'migration')}: ${applied.join(', ')}`, 80);
  });
}

async function publishCommand(env: Environment, options: Changing): Promise<void> {
  await using writer = await openWriter(env, options);
  await redisReady(writer.cache, CACHE_WITHIN_MS);
  // No transaction spans the cache. The row is written first, so that every publication has one.
  await audit(writer.store.db, writer.by, {
    action: 'cache.publish',
    subject: { kind: 'cache', id: 'all' },
  });
  const dirty = await writer.publisher.publishDirty();
  const repaired = await writer.publisher.compare();
  const published = dirty.published + repaired.published;
  show(options, { published }, () =>
    published === 0 ? 'the cache equals the database' : `published ${published} documents`,
  );
}

async function restoredCommand(env: Environment, options: Changing): Promise<void> {
  // The result names the tokens.
  await using writer = await openWriter(env, options, () => {});
  await redisReady(writer.cache, CACHE_WITHIN_MS);
  const why = 'an operator says that a backup was restored';
  const { published, lineage } = await writer.publisher.restored(why, writer.by);
  const { id = null, revokedAgain = [], forgotten = [] } = lineage ?? {};
  show(options, { lineage: id, published, revokedAgain, forgotten }, () =>
    [
      ...(lineage
        ? [
            `the database has a new lineage; ${published} documents are published again`,
            ...restoredTokensMessage(lineage),
          ]
        : ['another process has just given the database a new lineage, and publishes everything again']),
      'workers run every source again within a minute. Check the tokens: fleetbook token list',
    ].join('\n'),
  );
}
