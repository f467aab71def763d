import type { Environment } from '../config.ts';
import { claimContent } from '../store/content.ts';
import { lastSeen } from '../store/status.ts';
import type { Progress } from '../sync/stage.ts';
import { CommandFailure, UsageFailure } from './failure.ts';
import { printJson } from './table.ts';
import { openWriteTier, publishNow } from './write-tier.ts';

export async function syncCommand(
  env: Environment,
  sourceId: string,
  options: { json?: boolean } = {},
): Promise<void> {
  const { config, tier } = openWriteTier(env);
  await using _ = tier;
  const source = config.sources.find(({ id }) => id === sourceId);
  if (!source) {
    const known = config.sources.map(({ id }) => id);
    throw new UsageFailure(
      known.length > 0
        ? `there is no source "${sourceId}"; configured are ${known.join(', ')}`
        : `no source is configured; give e.g. HETZNER_URL, CLUSTERS_URL or FLEETBOOK_CONFIG`,
    );
  }
  await claimContent(tier.store.sql, config.settings.FLEETBOOK_CONTENT);
  const expected = await lastSeen(tier.store.sql, sourceId);
  const bar = progressBar(sourceId, expected, process.stderr);
  const result = await tier.runSource(source, { progress: bar.update }).finally(bar.end);
  const { seen, added, changed, retired, rejected } = result.counts;
  const counts = `${seen} rows, ${added} new, ${changed} changed, ${retired} retired, ${rejected} rejected`;
  if (options.json && (result.outcome === 'held' || result.outcome === 'superseded')) {
    printJson({ source: sourceId, ...result, published: false });
  }
  if (result.outcome === 'held') {
    const why = result.broken.map((guard) => guard.detail).join('; ');
    throw new CommandFailure(
      `${sourceId}: held for a decision: ${why}. Readers keep the last good catalogue`,
    );
  }
  if (result.outcome === 'superseded')
    throw new CommandFailure(`${sourceId}: another run began meanwhile; it counts`);
  const published = await publishNow(tier);
  if (options.json) return printJson({ source: sourceId, ...result, published });
  console.log(
    `${sourceId}: ${result.outcome}: ${counts}${published ? '' : '; the cache is away and gets it later'}`,
  );
}

const WIDTH = 30;

/** On a terminal a bar that fills towards what the last run saw; elsewhere a line every ten thousand rows. */
export function progressBar(
  label: string,
  expected: number | undefined,
  out: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>,
): { update: Progress; end: () => void } {
  let told = 0;
  return {
    update(seen) {
      if (out.isTTY) {
        const share = expected ? Math.min(1, seen / expected) : 0;
        const filled = Math.round(share * WIDTH);
        const bar = expected
          ? `${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${Math.round(share * 100)} % `
          : '';
        out.write(`\r\x1b[K${label} ${bar}${seen} rows`);
      } else if (seen - told >= 10_000) {
        told = seen;
        out.write(`${label}: ${seen} rows so far\n`);
      }
    },
    end() {
      if (out.isTTY) out.write('\r\x1b[K');
    },
  };
}
