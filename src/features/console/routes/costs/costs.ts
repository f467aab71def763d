import type { FastifyInstance } from 'fastify';
import { storedCurrency } from '../../../../db/prices/currency.ts';
import {
  type CostedCluster,
  costClusters,
  machinesNear,
  type OrganizationCluster,
  organizationClusters,
  pastPrices,
  shownMonth,
  sum,
} from '../../../../market/market.ts';
import { windowOf } from '../../../../ops/parameters.ts';
import { storedEntries } from '../../../../snapshot/document/price-book.ts';
import type { ClusterCosts, CostRow, CostShare, CostsAnswer } from '../api.ts';
import type { ConsoleContext } from '../context.ts';
import { slugOf, storedOrganization } from '../organizations.ts';
import { costsOverTime, dayStarts } from './cost-history.ts';

const DAYS = 30;

type Costed = CostedCluster<OrganizationCluster>;

export function addCosts(api: FastifyInstance, { sql }: ConsoleContext): void {
  api.get('/organizations/:slug/costs', async (request): Promise<CostsAnswer> => {
    const organization = await storedOrganization(sql, slugOf(request));
    const { limit, offset } = windowOf(request.query);
    const now = Date.now();
    const times = dayStarts(now, DAYS);
    const [clusters, entries, currency] = await Promise.all([
      organizationClusters(sql, organization.id),
      storedEntries(sql, organization.id),
      storedCurrency(sql),
    ]);
    const ids = [...new Set(clusters.map(({ machineId }) => machineId))];
    const [machines, past] = await Promise.all([
      machinesNear(sql, clusters),
      pastPrices(sql, ids, new Date(times[0] ?? now)),
    ]);
    const costed = costClusters(clusters, machines, entries, now);
    const share = shareOf(costed);
    return {
      currency: currency ?? null,
      ...share,
      incomplete: costed.filter(({ cost }) => !cost.isComplete).length,
      savingPerMonth: shownMonth(costed.reduce((total, { best }) => total + (best?.saving ?? 0n), 0n)),
      providers: shares(costed, ({ cluster: { provider } }) => provider.id).map(([first, cost]) => ({
        ...first.cluster.provider,
        ...cost,
      })),
      regions: shares(costed, ({ cluster }) => cluster.regionId).map(([{ cluster }, cost]) => ({
        provider: cluster.provider.name,
        code: cluster.region,
        ...cost,
      })),
      history: costsOverTime(clusters, machines, past, entries, times),
      rows: costed
        .sort(dearest)
        .slice(offset, offset + limit)
        .map(shownRow),
    };
  });
}

/** Returns what one cluster costs; null for a retired one. */
export async function costOfCluster(
  sql: ConsoleContext['sql'],
  organizationId: number,
  id: number,
): Promise<ClusterCosts | null> {
  const clusters = await organizationClusters(sql, organizationId, id);
  const [machines, entries, currency] = await Promise.all([
    machinesNear(sql, clusters),
    storedEntries(sql, organizationId),
    storedCurrency(sql),
  ]);
  const [costed] = costClusters(clusters, machines, entries, Date.now());
  return costed ? { ...shownRow(costed), currency: currency ?? null } : null;
}

function shareOf(costed: readonly Costed[]): CostShare {
  const knownPerMonth = shownMonth(sum(costed.map(({ cost }) => cost.known)).perMonth);
  const isComplete = costed.every(({ cost }) => cost.isComplete);
  return { clusters: costed.length, perMonth: isComplete ? knownPerMonth : null, knownPerMonth };
}

/** Returns a cluster of each group with the group's cost, the most expensive group first. */
function shares(
  costed: readonly Costed[],
  keyOf: (each: Costed) => number,
): (readonly [Costed, CostShare])[] {
  return [...Map.groupBy(costed, keyOf).values()]
    .flatMap((group) => (group[0] ? [[group[0], shareOf(group)] as const] : []))
    .sort(([, a], [, b]) => b.knownPerMonth - a.knownPerMonth);
}

function dearest(a: Costed, b: Costed): number {
  const [one, other] = [a.cost.known.perMonth, b.cost.known.perMonth];
  return one === other ? a.cluster.id - b.cluster.id : one > other ? -1 : 1;
}

function shownRow({ cluster, cost, isOwn, best }: Costed): CostRow {
  const { id, slug, provider, region, machineId, machineName } = cluster;
  const disks = cost.disks.filter((disk) => disk !== null);
  const knownPerMonth = shownMonth(cost.known.perMonth);
  return {
    id,
    slug,
    provider: provider.name,
    region,
    machine: { id: machineId, name: machineName },
    nodes: cost.nodes,
    perMonth: cost.isComplete ? knownPerMonth : null,
    knownPerMonth,
    machinePerMonth: cost.machine && shownMonth(cost.machine.perMonth),
    disksPerMonth: disks.length < cost.disks.length ? null : shownMonth(sum(disks).perMonth),
    isOwn,
    best: best && {
      id: best.machine.id,
      name: best.machine.name,
      savingPerMonth: shownMonth(best.saving),
    },
  };
}
