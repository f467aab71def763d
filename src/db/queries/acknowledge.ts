/** Acknowledges alerts, so that webhooks get no reminders of them. */
import type { Acknowledgement } from '../../domain/acknowledgement.ts';
import type { Decider } from '../../domain/operator.ts';
import type { Database } from '../database.ts';
import { and, eq, isNotNull, isNull, sql } from '../drizzle.ts';
import { alerts } from '../schema.ts';
import { audit } from './audit.ts';

export type Acknowledged =
  | {
      readonly outcome: 'acknowledged';
      readonly kind: string;
      readonly subject: string;
      readonly acknowledgement: Acknowledgement;
    }
  | { readonly outcome: 'over' }
  | { readonly outcome: 'unknown' };

const ACKNOWLEDGEMENT = {
  at: sql<string>`to_char(${alerts.acknowledgedAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
  until: sql<string | null>`to_char(${alerts.snoozedUntil} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
};

/**
 * Acknowledges an open alert, in place of an earlier acknowledgement.
 * @param snoozeMs after which reminders are sent again; undefined for an acknowledgement until the alert ends
 */
export async function acknowledgeAlert(
  db: Database,
  id: number,
  snoozeMs: number | undefined,
  decider: Decider & { readonly reason: string },
): Promise<Acknowledged> {
  return db.transaction(async (tx) => {
    const isShown = and(eq(alerts.id, id), isNotNull(alerts.toldAt));
    const [row] = await tx
      .update(alerts)
      .set({
        acknowledgedAt: sql`now()`,
        acknowledgedBy: decider.by,
        acknowledgedReason: decider.reason,
        snoozedUntil: snoozeMs === undefined ? null : sql`now() + make_interval(secs => ${snoozeMs / 1000})`,
      })
      .where(and(isShown, isNull(alerts.resolvedAt)))
      .returning({ kind: alerts.kind, subject: alerts.subject, ...ACKNOWLEDGEMENT });
    if (row === undefined) {
      const [over] = await tx.select({ id: alerts.id }).from(alerts).where(isShown);
      return { outcome: over ? 'over' : 'unknown' };
    }
    const { kind, subject, at, until } = row;
    await audit(tx, decider, {
      action: snoozeMs === undefined ? 'alert.acknowledge' : 'alert.snooze',
      subject: { kind: 'alert', id },
      details: { kind, subject, until },
    });
    const acknowledgement = { at, by: decider.by, reason: decider.reason, until };
    return { outcome: 'acknowledged', kind, subject, acknowledgement };
  });
}
