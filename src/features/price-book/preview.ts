/** Computes what an entry would change, without storing it. */
import type { Sql } from '../../db/connection/client.ts';
import { instant } from '../../db/connection/instant-text.ts';
import type { Organization } from '../../db/organizations.ts';
import { IS_PUBLISHED } from '../../db/published-rows.ts';
import {
  inOrganization,
  NOW,
  type OrganizationCosts,
  organizationCosts,
  readOrganization,
  shownMonth,
} from '../../market/market.ts';
import type { EntryPreview, GivenEntry, MonthCost } from './answers.ts';
import { readNames } from './names.ts';
import type { BegunEntry } from './plan-import.ts';
import { entryToAdd } from './write.ts';

/** @throws BadEntry for each entry that cannot be added */
export async function previewEntry(sql: Sql, { id }: Organization, given: GivenEntry): Promise<EntryPreview> {
  const [names, [clock], inputs] = await Promise.all([
    readNames(sql, [given]),
    sql<{ now: string }[]>`select ${instant(sql, 'clock_timestamp()', 'ms')} as now`,
    inOrganization(sql, id, (db) => readOrganization(db, id, NOW, Date.now())),
  ]);
  const { clusters, entries, marks } = inputs;
  const now = clock?.now ?? '';
  const added = entryToAdd(given, names, { now, entries });
  const isLater = added.from > now;
  const at = isLater ? added.from : now;
  const costsBy = (book: typeof entries) =>
    organizationCosts({ ...inputs, entries: book }, NOW, Date.parse(at));
  const [before, after, machines] = await Promise.all([
    costsBy(entries),
    costsBy([...entries, { ...added, id: 0 }]),
    selectedBy(sql, id, added),
  ]);
  return {
    currency: marks.currency,
    at,
    isLater,
    machines,
    clusters: clusters.length,
    affected: differing(before, after),
    before: monthCost(before),
    after: monthCost(after),
  };
}

function differing(before: OrganizationCosts, after: OrganizationCosts): number {
  const costOf = new Map(after.costs.map((cost) => [cost.cluster, cost]));
  return before.costs.filter(({ cluster, known, isComplete }) => {
    const other = costOf.get(cluster);
    return known.perMonth !== other?.known.perMonth || isComplete !== other.isComplete;
  }).length;
}

function monthCost({ total: { known, incomplete } }: OrganizationCosts): MonthCost {
  const knownPerMonth = shownMonth(known.perMonth);
  return { perMonth: incomplete === 0 ? knownPerMonth : null, knownPerMonth };
}

/** Counts the published machines that an entry selects. */
async function selectedBy(
  sql: Sql,
  organizationId: number,
  { providerId, regionId, family, machineId }: BegunEntry,
): Promise<number> {
  const [row] = await sql<{ machines: number }[]>`
    select count(*)::int as machines from machines m join regions r on r.id = m.region_id
    where ${sql.unsafe(IS_PUBLISHED)} and (r.organization_id is null or r.organization_id = ${organizationId})
      ${machineId === undefined ? sql`` : sql`and m.id = ${machineId}`}
      ${regionId === undefined ? sql`` : sql`and r.id = ${regionId}`}
      ${providerId === undefined ? sql`` : sql`and r.provider_id = ${providerId}`}
      ${family === undefined ? sql`` : sql`and starts_with(m.name, ${family})`}`;
  return row?.machines ?? 0;
}
