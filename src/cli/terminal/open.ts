/** Opens what commands change with. Their parts are loaded when they are opened. */
import { readSettings } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import { administration } from '../../db/administration.ts';
import type { LineageObserver } from '../../snapshot/publish/new-lineage.ts';
import { type DeciderOptions, decider } from './options.ts';
import { printAside } from './output.ts';

/** @param onNewLineage is called if the database turns out to be a restored one */
export async function openWriter(
  env: Environment,
  options: DeciderOptions,
  onNewLineage: LineageObserver = printNewLineage,
) {
  const config = { settings: readSettings(env) };
  const by = decider(config, options);
  const { composeWriter } = await import('../../app/writer.ts');
  const writer = composeWriter(config, await openLog(env), { onNewLineage });
  const changes = administration(writer.store.db, by);
  return { ...writer, by, changes, publish: () => publishNow(writer) };
}

/** Reads the whole configuration, and opens what runs a source or stores its batches. */
export async function openWorker(env: Environment, options: DeciderOptions) {
  const [{ readConfig }, { FEATURE_CONFIG }, { composeWorker }] = await Promise.all([
    import('../../config/config.ts'),
    import('../../app/features.ts'),
    import('../../app/worker.ts'),
  ]);
  const config = readConfig(env, FEATURE_CONFIG);
  const by = decider(config, options);
  const observers = { onNewLineage: printNewLineage, decidesCurrency: false };
  const worker = composeWorker(config, await openLog(env), observers);
  return { ...worker, config, by, publish: () => publishNow(worker) };
}

export type OpenWorker = Awaited<ReturnType<typeof openWorker>>;

const publishNow = async (writing: Parameters<typeof import('../../app/actions/publish.ts').publishNow>[0]) =>
  (await import('../../app/actions/publish.ts')).publishNow(writing);

const openLog = async (env: Environment) =>
  (await import('../../app/logger.ts')).openLogger(
    { LOG_LEVEL: env.LOG_LEVEL === 'debug' ? 'debug' : 'error' },
    'cli',
  );

const printNewLineage: LineageObserver = (begun, why) => {
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
