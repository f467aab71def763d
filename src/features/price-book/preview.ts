/** Computes what an entry would change, without storing it. */
import { type ClientDatabase, type Database, inOrganization } from '../../db/connection/client.ts';
import { type SQL, sql } from '../../db/connection/drizzle.ts';
import { only, rfc3339 } from '../../db/connection/statements.ts';
import type { Organization } from '../../db/organizations.ts';
import { IS_PUBLISHED } from '../../db/published-rows.ts';
import {
  NOW,
  type OrganizationCosts,
  organizationCosts,
  readOrganization,
  shownMonth,
} from '../../market/market.ts';
import type { EntryPreview, GivenEntry, MonthCost } from './answers.ts';
import { type BegunEntry, entryToAdd } from './changes.ts';
import { readNames } from './queries.ts';

/** @throws BadEntry for each entry that cannot be added */
export async function previewEntry(
  all: ClientDatabase,
  { id }: Organization,
  given: GivenEntry,
): Promise<EntryPreview> {
  const [names, clock, inputs] = await Promise.all([
    readNames(all, [given]),
    all.execute<{ now: string }>(sql`select ${rfc3339(sql`clock_timestamp()`, 'ms')} as now`),
    inOrganization(all, id, (db) => readOrganization(db, id, NOW, Date.now())),
  ]);
  const { clusters, entries, marks } = inputs;
  const { now } = only(clock);
  const added = entryToAdd(given, names, { now, entries });
  const isLater = added.from > now;
  const at = isLater ? added.from : now;
  const costsBy = (book: typeof entries) =>
    organizationCosts({ ...inputs, entries: book }, NOW, Date.parse(at));
  const [before, after, machines] = await Promise.all([
    costsBy(entries),
    costsBy([...entries, { ...added, id: 0 }]),
    selectedBy(all, id, added),
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
  db: Database,
  organizationId: number,
  { providerId, regionId, family, machineId }: BegunEntry,
): Promise<number> {
  const where = (value: unknown, condition: SQL) => (value === undefined ? sql`` : sql`and ${condition}`);
  const rows = await db.execute<{ machines: number }>(sql`
    select count(*)::int as machines from machines m join regions r on r.id = m.region_id
    where ${sql.raw(IS_PUBLISHED)} and (r.organization_id is null or r.organization_id = ${organizationId})
      ${where(machineId, sql`m.id = ${machineId}`)} ${where(regionId, sql`r.id = ${regionId}`)}
      ${where(providerId, sql`r.provider_id = ${providerId}`)} ${where(family, sql`starts_with(m.name, ${family})`)}`);
  return only(rows).machines;
}
