import { createHash } from 'node:crypto';
import type { SessionSql, Store } from '../db/connect.ts';
import { copyField, copyLines } from '../db/copy.ts';
import {
  computeClusterDiff,
  createClusterStaging,
  rejectStagedClusters,
  setRemovalAside,
} from '../db/queries/cluster-diff.ts';
import { resolveReferences, setSlugs, slugBatches, writeClusters } from '../db/queries/cluster-write.ts';
import {
  type BatchDecision,
  decide,
  heldReadAt,
  holdStagedClusters,
  isOpen,
  supersedeHeld,
} from '../db/queries/held.ts';
import { writeQuarantine } from '../db/queries/quarantine.ts';
import { boundedRejected, REJECTED_KEPT, type RejectedKey } from '../db/queries/rejected.ts';
import { finishRun, holdsFence, NO_COUNTS, type Run, type RunCounts } from '../db/queries/runs.ts';
import { recordUndo, restoreBefore, saveClusters } from '../db/queries/undo.ts';
import type { ReportedCluster } from '../domain/cluster.ts';
import { pricePerMinute } from '../domain/price.ts';
import type { ClusterItem, DocumentItem } from '../sources/source.ts';
import { checkCurrency } from './currency.ts';
import { endUnmodified, isUnmodified, keepVersions } from './documents.ts';
import { earlier } from './freshness.ts';
import { brokenGuards, type GuardLimits, runsUntilRetired } from './guard.ts';
import { nothingStored, type SyncResult } from './result.ts';
import { assignSlugs } from './slugs.ts';
import type { Pricing, Progress } from './stage.ts';
import { Turns } from './turns.ts';

export interface ClusterSync {
  readonly store: Store;
  readonly run: Run;
  readonly items: AsyncIterable<ClusterItem<ReportedCluster> | SavedCluster>;
  readonly pricing: Pricing;
  readonly limits: GuardLimits;
  /** See `CatalogueSync`. */
  readonly reading?: string;
  readonly approved?: boolean;
  readonly decision?: BatchDecision;
  /** The source said itself that what is missing has been deleted: it goes at once, if the guards let it. */
  readonly missingIsDeleted?: boolean;
  readonly progress?: Progress;
  readonly now: () => Date;
}

/** A cluster as it was stored before an approval, with the hash of what its source said. */
export interface SavedCluster {
  readonly kind: 'cluster';
  readonly cluster: ReportedCluster;
  readonly hash: string;
}

/** What the guards ask of machines alone. */
const NO_MACHINES = {
  repriced: 0,
  priceRatio: 1,
  withdrawn: 0,
  reshaped: 0,
  memoryFactor: 1,
  jumps: 0,
  jumpTypes: 0,
  duplicates: 0,
  duplicateTypes: 0,
  setAside: 0,
  totals: [],
};

/**
 * Stores what a control plane reports: fetch → stage → diff → guard → write, the last three in one transaction. Where
 * too much is missing and nothing else is wrong, what came and changed is stored, and the removal alone is held.
 * @throws SourceError when the source cannot be read whole; nothing is stored then.
 */
export async function syncClusters(sync: ClusterSync): Promise<SyncResult> {
  // Ending the session is the rollback: nothing that fails on the way leaves a trace, not even a lost connection.
  await using session = sync.store.session();
  const { sql } = session;
  await createClusterStaging(sql);
  const began = sync.now().toISOString();
  const fetched = await stageClusters(sql, sync);
  const now = sync.now().toISOString();
  const ownTime = earlier(began, fetched.asOf);

  await sql`begin`;
  if (!(await holdsFence(sql, sync.run)) || !(await isOpen(sql, sync.decision))) {
    await sql`rollback`;
    await finishRun(sql, sync.run, 'superseded', undefined, ownTime);
    return nothingStored('superseded');
  }
  if (isUnmodified(fetched.documents)) return await endUnmodified(sql, sync.run, ownTime);
  await checkCurrency(sql, sync.pricing);
  const { decision } = sync;
  const readAt = decision === undefined ? ownTime : await heldReadAt(sql, decision.batchId);
  const staged = await rejectStagedClusters(sql, fetched.namesMachines);
  const rejected = boundedRejected([...fetched.rejected, ...staged.rejected]);
  const diff = await computeClusterDiff(sql, sync.run.sourceId, rejected);
  const rejectedCount = fetched.seen - staged.usable;
  // What an operator has yet to make or to say is no sign of a broken feed: such clusters wait in quarantine.
  const waiting = fetched.waiting + staged.waiting;
  const [seen, unusable] = [fetched.seen - waiting, rejectedCount - waiting];
  const input = { ...diff, ...NO_MACHINES, seen, rejected: unusable };
  // New clusters are their owners' business; an organization that starts with a thousand is no incident. An empty
  // list is one only when there was something: a first day without clusters is ordinary.
  const broken = brokenGuards(input, { ...sync.limits, addedShare: Number.POSITIVE_INFINITY }).filter(
    (guard) => guard.guard !== 'empty' || diff.known > 0,
  );
  const told = { broken, rejected, withdrawn: [], regions: 0 };
  const ended = async (outcome: SyncResult['outcome'], stored: Partial<RunCounts>): Promise<SyncResult> => {
    const counts = { ...NO_COUNTS, ...stored, seen: fetched.seen, rejected: rejectedCount };
    const why = outcome === 'held' ? broken.map(({ detail }) => detail).join('; ') : undefined;
    await finishRun(sql, sync.run, outcome, counts, readAt, why);
    if (decision?.kind === 'undo') await recordUndo(sql, decision);
    await sql`commit`;
    return { outcome, counts, ...told };
  };
  const held = broken.length > 0 && !sync.approved;
  if (held) {
    // All of it: whoever approves the batch removes what is missing from the whole of what there is.
    await holdStagedClusters(sql, sync.run, broken, { readAt, rejected });
    if (broken.some(({ guard }) => guard !== 'removed')) return await ended('held', {});
  }
  if (decision?.kind === 'approve') await saveClusters(sql, decision, sync.run.sourceId);
  const { added, changed: differing } = held ? await setRemovalAside(sql) : diff;
  const changed = differing + (await resolveReferences(sql));
  const untilRetired = sync.missingIsDeleted ? 1 : runsUntilRetired(sync.approved);
  for await (const { rows, taken } of slugBatches(sql, untilRetired))
    await setSlugs(sql, assignSlugs(rows, taken));
  const retired = await writeClusters(sql, sync.run.sourceId, now, untilRetired);
  if (decision?.kind === 'undo') await restoreBefore(sql, decision, sync.run.sourceId);
  else await writeQuarantine(sql, sync.run.sourceId, rejected);
  // What is held has to be read again: its document says more than what is stored.
  await keepVersions(sql, sync.run.sourceId, held ? undefined : sync.reading, fetched.documents, rejected);
  if (held) return await ended('held', { added, changed });
  if (decision?.kind === 'approve') await decide(sql, decision.batchId, 'approved', decision.decider);
  else if (!sync.approved) await supersedeHeld(sql, sync.run.sourceId);
  return await ended(added + changed + retired > 0 ? 'changed' : 'unchanged', { added, changed, retired });
}

interface FetchedClusters {
  readonly seen: number;
  /** At most one more than `REJECTED_KEPT`. */
  readonly rejected: readonly RejectedKey[];
  /** How many of all that are rejected wait for an operator. */
  readonly waiting: number;
  /** Whether some machine is only named. */
  readonly namesMachines: boolean;
  readonly documents: readonly DocumentItem[];
  /** How old the data is by the upstream's own word, RFC 3339. */
  readonly asOf: string | undefined;
}

/** Copies every cluster into the staging table. @throws SourceError when the adapter fails */
export async function stageClusters(
  sql: SessionSql,
  sync: Pick<ClusterSync, 'items' | 'pricing' | 'progress'>,
): Promise<FetchedClusters> {
  const rejected: RejectedKey[] = [];
  const documents: DocumentItem[] = [];
  let seen = 0;
  let waiting = 0;
  let namesMachines = false;
  let asOf: string | undefined;
  const turns = new Turns();
  async function* lines(): AsyncGenerator<string> {
    for await (const item of sync.items) {
      if (item.kind === 'version' || item.kind === 'unmodified') {
        documents.push(item);
        continue;
      }
      if (item.kind === 'as-of') {
        asOf = item.time;
        continue;
      }
      seen += 1;
      if (turns.isOver()) await turns.pass();
      namesMachines ||= item.kind === 'cluster' && item.cluster.machine.cpu === undefined;
      const row = item.kind === 'cluster' ? stagedCluster(item.cluster, sync.pricing) : item;
      if (row.kind === 'rejected') {
        if (row.waits) waiting += 1;
        if (rejected.length <= REJECTED_KEPT) rejected.push(row);
        continue;
      }
      const json = JSON.stringify(row.item);
      const hash = 'hash' in item ? item.hash : createHash('sha256').update(json).digest('hex');
      yield `${copyField(row.item.organization)}\t${copyField(row.item.key)}\t\\\\x${hash}\t${copyField(json)}\n`;
    }
  }
  await copyLines(sql, 'staged_clusters', lines());
  sync.progress?.(seen);
  return { seen, rejected, waiting, namesMachines, documents, asOf };
}

interface ClusterKey {
  readonly organization: string;
  readonly key: string;
}

/**
 * The cluster with its disk prices per minute in the published currency. Field by field, since its hash depends on
 * their order and a held batch comes back in another one.
 */
function stagedCluster(
  cluster: ReportedCluster,
  pricing: Pricing,
):
  | (RejectedKey & { readonly kind: 'rejected' })
  | { readonly kind: 'cluster'; readonly item: Readonly<Record<string, unknown>> & ClusterKey } {
  const { organization, key, name, slug, provider, region, status, shards, replicas, user, machine } =
    cluster;
  const disks = [];
  for (const { type, size, unit, autoscaling } of cluster.disks) {
    const { amount, per, currency } = type.price;
    const pricePer = pricePerMinute(type.price, pricing.currency, pricing.rates);
    if (pricePer === undefined) {
      return {
        kind: 'rejected',
        key,
        organization,
        code: 'no_exchange_rate',
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
    createdAt: cluster.createdAt,
  };
  return { kind: 'cluster', item };
}
