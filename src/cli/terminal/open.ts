/** Opens what commands read and change with. What changes need is loaded when it is opened. */
import { databaseUrls, readSettings } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import { openStore } from '../../db/connection/connect.ts';
import type { LineageObserver } from '../../snapshot/publish/new-lineage.ts';
import { type DeciderOptions, decider } from './options.ts';
import { printAside } from './output.ts';

/** Opens PostgreSQL for a command that publishes nothing. The worker's role sees every organization's rows. */
export function openDatabase(env: Environment) {
  const settings = readSettings(env);
  const store = openStore({
    ...databaseUrls({ settings }),
    role: 'worker',
    connections: 2,
    statementTimeoutMs: settings.WRITE_STATEMENT_TIMEOUT * 1000,
  });
  return { ...store, settings };
}

/** @param onNewLineage is called if the database turns out to be a restored one */
export async function openWriter(
  env: Environment,
  options: DeciderOptions,
  onNewLineage: LineageObserver = printNewLineage,
) {
  const config = { settings: readSettings(env) };
  const by = decider(config, options);
  const [{ composeWriter }, { administration }] = await Promise.all([
    import('../../app/writer.ts'),
    import('../../app/actions/administration.ts'),
  ]);
  const writer = composeWriter(config, await openLog(env), { onNewLineage });
  const changes = administration(writer.store.db, by);
  return { ...writer, by, changes, publish: () => publishNow(writer) };
}

export const publishNow = async (
  writing: Parameters<typeof import('../../app/actions/publish.ts').publishNow>[0],
) => (await import('../../app/actions/publish.ts')).publishNow(writing);

export const openLog = async (env: Environment) =>
  (await import('../../app/logger.ts')).openLogger(
    { LOG_LEVEL: env.LOG_LEVEL === 'debug' ? 'debug' : 'error' },
    'cli',
  );

export const printNewLineage: LineageObserver = (begun, why) => {
  for (const line of [`${why}; it has a new lineage now`, ...restoredTokensMessage(begun)])
    printAside(`fleetbook: ${line}`);
};

/** Returns a line for the tokens that a restored database revokes again, and one for those that it has lost. */
export function restoredTokensMessage({ revokedAgain, forgotten }: Parameters<LineageObserver>[0]): string[] {
  const revoked = revokedAgain.map(({ id, organization }) => `${id} (${organization})`).join(', ');
  return [
    ...(revoked ? [`tokens revoked after the backup are revoked again: ${revoked}`] : []),
    ...(forgotten.length > 0
      ? [
          `tokens created after the backup are lost: ${forgotten.join(', ')}; issue new ones: fleetbook token create`,
        ]
      : []),
  ];
}
