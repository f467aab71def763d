import type { StatusPart } from '../../app/feature.ts';
import type { Sql } from '../../db/client.ts';
import { acknowledgementText } from './acknowledgement.ts';
import { acknowledgedAlerts } from './queries.ts';
import { sourceOfAlert } from './subject.ts';

/** Shows the acknowledged alerts of each source in `fleetbook status`. */
export async function alertStatus(sql: Sql): Promise<StatusPart> {
  const bySource = Map.groupBy(await acknowledgedAlerts(sql), sourceOfAlert);
  const of = (source: string) => bySource.get(source) ?? [];
  return {
    members: (source) => ({ acknowledgedAlerts: of(source) }),
    notes: (source, now) =>
      of(source).flatMap(({ id, kind, acknowledgement }) =>
        acknowledgement ? `alert ${id} ${kind} is ${acknowledgementText(acknowledgement, now)}` : [],
      ),
  };
}
