import type { Sql } from '../../db/connection/client.ts';
import { instant } from '../../db/connection/instant-text.ts';
import type { Condition } from '../../domain/alert.ts';
import { RETIREMENT_NOTICE_DAYS } from '../../domain/end-of-sale.ts';
import { timeInWords } from '../../domain/machine-facts.ts';
import { noun } from '../../domain/text/quantities.ts';

interface RetiringMachine {
  readonly id: number;
  readonly sourceId: string;
  readonly provider: string;
  readonly regionCode: string;
  readonly name: string;
  readonly retiresAt: string;
  readonly clusters: number;
  /** The first ones, as `organization/slug`. */
  readonly first: readonly string[];
}

/** Clusters that one summary names. */
const NAMED = 5;

/** Returns a condition for each machine whose provider retires it soon, or has retired it, while clusters run on it. */
export async function findRetiringMachines(sql: Sql, now: Date): Promise<Condition[]> {
  const until = new Date(now.getTime() + RETIREMENT_NOTICE_DAYS * 86_400_000).toISOString();
  // The index of ends has this expression.
  const machines = await sql<RetiringMachine[]>`
    select m.id, m.source_id as "sourceId", p.name as provider, r.code as "regionCode", m.name,
      ${instant(sql, 'm.retires_at')} as "retiresAt", count(*)::int as clusters,
      (array_agg(o.slug || '/' || c.slug order by o.slug collate "C", c.slug collate "C"))[1:${NAMED}::int] as first
    from machines m
    join clusters c on c.machine_id = m.id and c.retired_at is null
    join organizations o on o.id = c.organization_id and o.deleted_at is null
    join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    where least(m.orderable_until, m.retires_at) is not null and m.retires_at <= ${until} and m.source_id is not null
    group by m.id, p.name, r.code order by m.retires_at, m.id`;
  return machines.map(({ id, sourceId, provider, regionCode, name, retiresAt, clusters, first }) => ({
    kind: 'machine_retiring',
    subject: `${sourceId}/${regionCode}/${name}`,
    summary: `${provider} ${Date.parse(retiresAt) <= now.getTime() ? 'retired' : 'retires'} ${name} in ${regionCode} on ${timeInWords(retiresAt)}, and ${clusters} ${noun(clusters, 'cluster')} ${clusters === 1 ? 'runs' : 'run'} on it: ${first.join(', ')}${clusters > first.length ? ', …' : ''}; move them to another machine`,
    details: { machine: id, name, retiresAt, clusters, first },
  }));
}
