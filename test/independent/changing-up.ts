/** A running Fleetbook with the sample catalogue and a change in its feed. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import clusters from '../../src/dev/sample/clusters.json' with { type: 'json' };
import { SAMPLE_RATES } from '../../src/dev/sample/rates.ts';
import { sampleSettings, startSampleUpstream } from '../../src/dev/sample/upstream.ts';
import { fleetbook } from '../support/fleetbook.ts';
import { until } from '../support/until.ts';
import { startUp, temporaryHome, type Up } from '../support/up.ts';

export interface ChangingUp extends AsyncDisposable {
  readonly up: Up;
  /** A cursor of `/v1/changes`. A change of a cluster is behind it. */
  readonly cursor: string;
}

/** Starts it, and waits until one cluster has changed and the first exports are made. */
export async function startChangingUp(): Promise<ChangingUp> {
  await using opened = new AsyncDisposableStack();
  const home = opened.use(await temporaryHome());
  const upstream = opened.use(await startSampleUpstream());
  const file = join(home.path, 'clusters.json');
  const write = (status: string) =>
    writeFile(
      file,
      JSON.stringify(
        clusters.map((each, index) => ({ ...each, organization: 'default', ...(index === 0 && { status }) })),
      ),
    );
  await write('Active');
  const up = opened.use(
    await startUp(home.path, {
      ...sampleSettings(upstream),
      CLUSTERS_URL: file,
      CATALOGUE_RATES: `EUR:${SAMPLE_RATES.rates.EUR}`,
    }),
  );
  // Clusters are read after the machines that they run on.
  await until(async () => ((await up.json('/v1/clusters')) as unknown[]).length === clusters.length, {
    what: 'the clusters',
    timeoutMs: 60_000,
  });
  const { next: cursor } = (await up.json('/v1/changes')) as { next: string };
  await write('Stopped');
  const synced = await fleetbook(['sync', 'clusters'], { FLEETBOOK_HOME: `${home.path}/.fleetbook` });
  if (synced.code !== 0) throw new Error(`the clusters were not read again: ${JSON.stringify(synced)}`);
  await until(
    async () => {
      const { changes } = (await up.json(`/v1/changes?after=${cursor}&limit=1000`)) as {
        changes: { type: string }[];
      };
      // Changes of the catalogue may precede it.
      return changes.some(({ type }) => type === 'cluster.changed');
    },
    { what: `the change in the feed after: ${synced.stdout}`, timeoutMs: 60_000 },
  );
  await until(async () => (await up.get('/v1/exports')).status === 200, {
    what: 'the first exports',
    timeoutMs: 60_000,
  });
  const running = opened.move();
  return { up, cursor, [Symbol.asyncDispose]: () => running.disposeAsync() };
}
