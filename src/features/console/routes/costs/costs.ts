import type { FastifyInstance } from 'fastify';
import { inOrganization } from '../../../../db/connection/client.ts';
import {
  type Cheaper,
  type CostOfCluster,
  type RegionCandidate,
  readCostsAndSavings,
  shownMonth,
  type Total,
} from '../../../../market/market.ts';
import { windowOf } from '../../../../ops/parameters.ts';
import type { ClusterCosts, CostRow, CostShare, CostsAnswer } from '../answers.ts';
import type { ConsoleContext } from '../context.ts';
import { slugOf, storedOrganization } from '../organizations.ts';
import { costsOverTime, dayStarts, pastPrices } from './cost-history.ts';

const DAYS = 30;

export function addCosts(api: FastifyInstance, { db: all }: ConsoleContext): void {
  api.get('/organizations/:slug/costs', async (request): Promise<CostsAnswer> => {
    const organization = await storedOrganization(all, slugOf(request));
    const { limit, offset } = windowOf(request.query);
    const now = Date.now();
    const times = dayStarts(now, DAYS);
    const { inputs, costs, best, past } = await inOrganization(all, organization.id, async (db) => {
      const found = await readCostsAndSavings(db, organization.id, now);
      const after = new Date(times[0] ?? now);
      return { ...found, past: await pastPrices(db, [...found.inputs.machines.keys()], after) };
    });
    return {
      currency: inputs.marks.currency,
      ...shareOf(costs.total),
      incomplete: costs.total.incomplete,
      savingPerMonth: shownMonth([...best.values()].reduce((total, { saving }) => total + saving, 0n)),
      providers: costs.providers.map(({ provider, ...total }) => ({ ...provider, ...shareOf(total) })),
      regions: costs.regions.map(({ provider, region, ...total }) => ({
        provider: provider.name,
        code: region.code,
        ...shareOf(total),
      })),
      history: costsOverTime(inputs, past, times),
      rows: costs.costs.slice(offset, offset + limit).map((cost) => shownRow(cost, best.get(cost))),
    };
  });
}

/** Returns what one cluster costs; null for a retired one. */
export function costOfCluster(
  all: ConsoleContext['db'],
  organizationId: number,
  id: number,
): Promise<ClusterCosts | null> {
  return inOrganization(all, organizationId, async (db) => {
    const { inputs, costs, best } = await readCostsAndSavings(db, organizationId, Date.now(), { id });
    const [cost] = costs.costs;
    return cost ? { ...shownRow(cost, best.get(cost)), currency: inputs.marks.currency } : null;
  });
}

function shareOf({ clusters, incomplete, known }: Total): CostShare {
  const knownPerMonth = shownMonth(known.perMonth);
  return { clusters, perMonth: incomplete === 0 ? knownPerMonth : null, knownPerMonth };
}

function shownRow(
  { cluster, machine, amount, known, isComplete }: CostOfCluster,
  best: Cheaper<RegionCandidate> | undefined,
): CostRow {
  const { id, slug, where, nodes, disks, knowsDisks } = cluster;
  const knownPerMonth = shownMonth(known.perMonth);
  return {
    id,
    slug,
    provider: where.provider.name,
    region: where.region.code,
    machine: { id: machine.stored.id, name: machine.stored.name },
    nodes,
    perMonth: isComplete ? knownPerMonth : null,
    knownPerMonth,
    machinePerMonth: amount && shownMonth(amount.perMonth),
    disksPerMonth: knowsDisks ? shownMonth(disks.perMonth) : null,
    priceSource: machine.source,
    best: best
      ? { id: best.candidate.id, name: best.candidate.name, savingPerMonth: shownMonth(best.saving) }
      : null,
  };
}
