/** Where a machine that a source names is stored. */
import type { Sql } from '../client.ts';

export interface MachinePlace {
  readonly regionId: number;
  readonly regionName: string;
  /** Null for a machine that was never stored. */
  readonly machineId: number | null;
}

/** Undefined for a region of the catalogue that is not stored. */
export async function machinePlace(
  sql: Sql,
  providerId: number,
  regionCode: string,
  name: string,
): Promise<MachinePlace | undefined> {
  const [place] = await sql<MachinePlace[]>`
    select r.id as "regionId", r.name as "regionName", m.id as "machineId"
    from regions r left join machines m on m.region_id = r.id and m.name = ${name}
    where r.provider_id = ${providerId} and r.code = ${regionCode} and r.organization_id is null`;
  return place;
}
