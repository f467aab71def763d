/** Copies clusters into the staging table while they are fetched. */
import { createHash } from 'node:crypto';
import type { ConnectionDatabase } from '../../db/connection/connect.ts';
import { copyField, copyLines } from '../../db/connection/copy.ts';
import { pgTable } from '../../db/connection/drizzle.ts';
import { bytes } from '../../db/schema/shared-columns.ts';
import type { ReportedCluster } from '../../domain/cluster.ts';
import { Slice, WORKER_SLICE_MS } from '../../domain/event-loop.ts';
import { pricePerMinute } from '../../domain/prices/price.ts';
import { REJECTED_KEPT, type RejectedKey } from '../../domain/rejected-rows.ts';
import type { ClusterItem, ValidatorItem } from '../../sources/source.ts';
import type { Pricing } from '../currency.ts';
import type { Progress } from '../pipeline.ts';

export const stagedClusters = pgTable('staged_clusters', (c) => ({
  organization: c.text('organization').notNull(),
  sourceKey: c.text('source_key').notNull(),
  sourceHash: bytes('source_hash').notNull(),
  /** The cluster, with its disk prices per minute in the published currency. */
  item: c.jsonb('item').notNull(),
}));

/** A cluster from before an approval, with the digest of the source's data. */
export interface SavedCluster {
  readonly kind: 'cluster';
  readonly cluster: ReportedCluster;
  readonly hash: string;
  /** RFC 3339: since when it had its machine. */
  readonly machineSince: string;
}

export type StagedClusters = Awaited<ReturnType<typeof stageClusters>>;

/** Creates the staging table and copies every cluster into it. @throws SourceError if the adapter fails */
export async function stageClusters(
  db: ConnectionDatabase,
  items: AsyncIterable<ClusterItem<ReportedCluster> | SavedCluster>,
  pricing: Pricing,
  progress: Progress = () => {},
) {
  const rejected: RejectedKey[] = [];
  const validators: ValidatorItem[] = [];
  let seen = 0;
  let waiting = 0;
  /** True if a cluster names its machine without a shape. */
  let namesMachines = false;
  let dataTime: string | undefined;
  const slice = new Slice(WORKER_SLICE_MS);
  async function* lines(): AsyncGenerator<string> {
    for await (const item of items) {
      if (item.kind === 'validator' || item.kind === 'unmodified') {
        validators.push(item);
        continue;
      }
      if (item.kind === 'as-of') {
        dataTime = item.time;
        continue;
      }
      seen += 1;
      if (slice.isOver) await slice.next();
      namesMachines ||= item.kind === 'cluster' && item.cluster.machine.cpu === undefined;
      const row = item.kind === 'cluster' ? stagedCluster(item.cluster, pricing) : item;
      if (row.kind === 'rejected') {
        if (row.waits) waiting += 1;
        if (rejected.length <= REJECTED_KEPT) rejected.push(row);
        continue;
      }
      const json = JSON.stringify(
        'machineSince' in item ? { ...row.item, machineSince: item.machineSince } : row.item,
      );
      const hash = 'hash' in item ? item.hash : createHash('sha256').update(json).digest('hex');
      yield `${copyField(row.item.organization)}\t${copyField(row.item.key)}\t\\\\x${hash}\t${copyField(json)}\n`;
    }
  }
  await copyLines(db, stagedClusters, lines());
  progress(seen);
  return { seen, rejected, waiting, namesMachines, validators, dataTime };
}

/** Lists every field: the hash depends on their order, and Postgres returns a held batch in another order. */
function stagedCluster(cluster: ReportedCluster, pricing: Pricing) {
  const { organization, key, name, slug, provider, region, status, shards, replicas, user, machine } =
    cluster;
  const { engine, version, endOfLife } = cluster.software ?? {};
  const disks = [];
  for (const { type, size, unit, autoscaling } of cluster.disks) {
    const { amount, per, currency } = type.price;
    const pricePer = pricePerMinute(type.price, pricing.currency, pricing.rates);
    if (pricePer === undefined) {
      return {
        kind: 'rejected' as const,
        key,
        organization,
        code: 'no_exchange_rate' as const,
        waits: undefined,
        reason: `disk type ${type.name} is priced in ${currency}, for which there is no exchange rate; give one in CATALOGUE_RATES`,
      };
    }
    disks.push({
      type: { name: type.name, price: { amount, per, currency }, unit: type.unit, pricePerMinute: pricePer },
      size,
      unit,
      autoscaling,
    });
  }
  const item = {
    organization,
    key,
    name,
    slug,
    provider,
    region: { code: region.code, name: region.name },
    status,
    shards,
    replicas,
    user: { firstName: user.firstName, lastName: user.lastName },
    machine: { name: machine.name, cpu: machine.cpu, ram: machine.ram, ramUnit: machine.ramUnit },
    disks,
    software: { engine, version, endOfLife },
    createdAt: cluster.createdAt,
  };
  return { kind: 'cluster' as const, item };
}
