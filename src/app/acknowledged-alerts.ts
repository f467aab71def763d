import type { Sql } from '../db/connection/client.ts';
import type { AcknowledgedAlert } from '../domain/alert.ts';
import { FEATURES } from './features.ts';

/** Finds open alerts that an operator has acknowledged. */
export async function acknowledgedAlerts(sql: Sql): Promise<readonly AcknowledgedAlert[]> {
  return (await Promise.all(FEATURES.map(({ acknowledged }) => acknowledged?.(sql) ?? []))).flat();
}
