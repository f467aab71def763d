/** One machine with all that is stored about it, published or not. */
import type { MachineFacts } from '../../domain/machine-facts.ts';
import type { Sql } from '../client.ts';
import { type MachineChange, machineHistory } from './changes.ts';
import { type PriceHistory, priceHistory } from './prices.ts';

/** Changes of one machine that its page shows. */
const CHANGES_SHOWN = 100;

export interface MachineDetail extends PriceHistory {
  readonly providerId: number;
  readonly regionId: number;
  readonly regionName: string;
  /** Null for a machine that only clusters name. */
  readonly source: string | null;
  readonly cpu: number;
  readonly ram: number;
  readonly ramUnit: 'Binary' | 'Decimal';
  readonly facts: MachineFacts;
  /** RFC 3339; `addedBy` is the run that added it. */
  readonly createdAt: string;
  readonly addedBy: number | null;
  readonly retiredAt: string | null;
  /** Good runs in a row that did not list it. */
  readonly missedRuns: number;
  /** The newest first. */
  readonly changes: readonly MachineChange[];
}

/** Undefined for an id that no machine has. */
export async function machineDetail(sql: Sql, machineId: number): Promise<MachineDetail | undefined> {
  const [history, changes, [row]] = await Promise.all([
    priceHistory(sql, machineId),
    machineHistory(sql, machineId, CHANGES_SHOWN),
    sql<Omit<MachineDetail, keyof PriceHistory | 'changes'>[]>`
      select p.id as "providerId", r.id as "regionId", r.name as "regionName", m.source_id as source, m.cpu,
        m.ram::float as ram, m.ram_unit as "ramUnit",
        json_build_object('architecture', m.architecture, 'generation', m.generation, 'cpuKind', m.cpu_kind,
          'localDisk', m.local_disk, 'network', m.network) as facts,
        to_char(m.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "createdAt",
        (select n.id::float from sync_runs n where n.id = m.added_by) as "addedBy",
        to_char(m.retired_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "retiredAt",
        m.missed_runs as "missedRuns"
      from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
      where m.id = ${machineId}`,
  ]);
  return history && row && { ...history, ...row, changes };
}
