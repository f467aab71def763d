/** Acknowledged and snoozed alerts, and the messages about them. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { snoozedAlert } from '../../../src/app/actions/inputs.ts';
import { acknowledgeAlert, alertRecords, resolvedAlerts } from '../../../src/db/alerts.ts';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import { evaluateAlerts } from '../../../src/features/notifications/evaluate.ts';
import { DEFAULT_RULES } from '../../../src/features/notifications/rules.ts';
import { offers, openScene, region, type Scene } from '../../sync/scene.ts';

const HOUR = 3_600_000;
const ADA = { by: 'ada', how: 'cli', address: 'ada@desk', reason: 'the provider repairs it' } as const;
const NOTHING = { opened: [], repeated: [], resolved: [] };

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(async () => {
  await scene.reset();
  await read();
  await evaluate(4);
});

const read = () => scene.catalogue([region('fsn1'), ...offers('fsn1', 3)]);
/** @param hours since the source was read; it is stale after three */
const evaluate = (hours: number) =>
  evaluateAlerts(
    scene.store.db,
    [{ id: 'acme', kind: 'catalogue', maxAge: 3 * 3600 }],
    DEFAULT_RULES,
    new Date(scene.now().getTime() + hours * HOUR),
  );
const open = async () => {
  const [alert] = await alertRecords(scene.store.db, { isOpenOnly: true, limit: 1 });
  return alert ?? expect.unreachable('no alert is open');
};
const acknowledge = async (snoozeMs?: number) =>
  acknowledgeAlert(scene.store.db, (await open()).id, snoozeMs, ADA);
/** The last message was sent two days ago. */
const isDue = () => scene.sql`update alerts set notified_at = now() - interval '48 hours'`;

describe('an acknowledged alert', () => {
  it('stays open with name and reason, gets no reminder, and its end is sent', async () => {
    expect(await acknowledge()).toMatchObject({ kind: 'source_stale' });
    expect((await open()).acknowledgement).toEqual({
      at: expect.stringMatching(/Z$/),
      by: 'ada',
      reason: 'the provider repairs it',
      until: null,
    });
    await isDue();
    expect(await evaluate(5)).toEqual(NOTHING);
    await read();
    expect(await evaluate(0)).toMatchObject({ resolved: [{ kind: 'source_stale' }] });
    expect(await resolvedAlerts(scene.store.db, 1)).toMatchObject([{ acknowledgement: { by: 'ada' } }]);
    expect(await evaluate(4)).toMatchObject({ opened: [{ acknowledgedAt: null }] });
    expect((await open()).acknowledgement).toBeNull();
  });

  it('is in the audit log with name, reason and subject', async () => {
    await acknowledge();
    await acknowledge(4 * HOUR);
    const { id, acknowledgement } = await open();
    const about = { kind: 'source_stale', subject: 'acme' };
    const subject = { kind: 'alert', id: String(id) };
    const { reason, by } = ADA;
    expect((await auditRecords(scene.store.db, { limit: 2 })).rows).toMatchObject([
      { action: 'alert.snooze', by, reason, subject, details: { ...about, until: acknowledgement?.until } },
      { action: 'alert.acknowledge', by, reason, subject, details: { ...about, until: null } },
    ]);
  });

  it('must be open: a resolved or unlisted alert is rejected and not recorded', async () => {
    const { id } = await open();
    await scene.sql`update alerts set notified_at = null`;
    expect(await acknowledgeAlert(scene.store.db, id, undefined, ADA)).toBe('unknown');
    await scene.sql`update alerts set notified_at = now(), resolved_at = now()`;
    expect(await acknowledgeAlert(scene.store.db, id, undefined, ADA)).toBe('over');
    expect(await acknowledgeAlert(scene.store.db, id + 1, undefined, ADA)).toBe('unknown');
    expect((await auditRecords(scene.store.db, {})).total).toBe(0);
  });
});

describe('a snoozed alert', () => {
  it('gets a reminder when its snooze ends, and then reminders like any other alert', async () => {
    await acknowledge(4 * HOUR);
    const { acknowledgement } = await open();
    expect(Date.parse(acknowledgement?.until ?? '') - Date.parse(acknowledgement?.at ?? '')).toBe(4 * HOUR);
    await isDue();
    expect(await evaluate(5)).toEqual(NOTHING);
    await scene.sql`update alerts set notified_at = now(), snoozed_until = now()`;
    expect((await open()).acknowledgement, 'before the next evaluation').toBeNull();
    expect(await evaluate(6)).toMatchObject({ repeated: [{ kind: 'source_stale' }] });
    expect(await evaluate(6)).toEqual(NOTHING);
    await isDue();
    expect(await evaluate(7)).toMatchObject({ repeated: [{ kind: 'source_stale' }] });
  });

  it('that is acknowledged too stays acknowledged until it ends', async () => {
    await acknowledge(HOUR);
    await acknowledge();
    expect((await open()).acknowledgement).toMatchObject({ until: null });
  });

  it('lasts for at most 30 days', () => {
    const spans = ['30m', '4h', '30d', '31d', '721h', '0h', '4', '2030-01-01'].map(
      (span) => snoozedAlert.safeParse({ for: span }).data?.for,
    );
    expect(spans).toEqual([HOUR / 2, 4 * HOUR, 720 * HOUR, ...Array(5).fill(undefined)]);
  });
});
