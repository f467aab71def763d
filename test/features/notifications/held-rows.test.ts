import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decide, pendingBatches } from '../../../src/db/held-batches.ts';
import { type HeldSampleRow, sampleOf } from '../../../src/domain/held-sample.ts';
import {
  type AlertMessage,
  bodyText,
  type MessageAlert,
} from '../../../src/features/notifications/alert-messages.ts';
import { deliver } from '../../../src/features/notifications/deliver.ts';
import { evaluateAlerts } from '../../../src/features/notifications/evaluate.ts';
import { operatorsRecipient } from '../../../src/features/notifications/receivers.ts';
import {
  type AlertReceiver,
  type AlertRules,
  DEFAULT_RULES,
} from '../../../src/features/notifications/rules.ts';
import { cluster } from '../../sync/clusters/rows.ts';
import { OPERATOR, offer, offers, openScene, region, type Scene, STRICT } from '../../sync/scene.ts';
import { type Receiver, receiver } from './webhook-receiver.ts';

let scene: Scene;
let hook: Receiver;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await scene.reset();
  hook = await receiver();
  return () => hook[Symbol.asyncDispose]();
});
afterAll(() => {});

const webhook = (format: AlertReceiver['format'] = 'standard'): AlertReceiver => ({
  id: 'ops',
  url: hook.url,
  secret: undefined,
  format,
  kinds: ['batch_held'],
});
async function sentText(format: AlertReceiver['format'] = 'standard'): Promise<string> {
  const rules: AlertRules = { ...DEFAULT_RULES, webhooks: [webhook(format)] };
  await evaluateAlerts(scene.store.db, [], rules, scene.now());
  await deliver({
    db: scene.store.db,
    recipient: operatorsRecipient(webhook(format)),
    logger: pino({ level: 'silent' }),
  });
  return hook.taken.at(-1)?.text ?? expect.unreachable('nothing was sent');
}
const detailsOf = (text: string) =>
  (JSON.parse(text) as AlertMessage).data.alerts[0]?.details as {
    batch: number;
    rows: readonly HeldSampleRow[];
    more: number;
  };
/** Forty machines. Then twenty-five are removed, one has another size, and five have another price, m1's the most. */
async function holdMachines(): Promise<void> {
  await scene.catalogue([region('fsn1'), ...offers('fsn1', 40)]);
  const rest = offers('fsn1', 15).slice(6);
  const priced = ['m2', 'm3', 'm4', 'm5'].map((name) => offer('fsn1', name, { amount: '0.12' }));
  const held = await scene.catalogue([
    region('fsn1'),
    offer('fsn1', 'm1', { amount: '0.24' }),
    ...priced,
    offer('fsn1', 'm6', { cpu: 8, ram: 16 }),
    ...rest,
  ]);
  expect(held.outcome).toBe('held');
}

describe('an alert about a held batch', () => {
  it('has the ten rows that change most, of each kind, before and after', async () => {
    await holdMachines();
    const { rows, more } = detailsOf(await sentText());
    expect(more).toBe(31 - 10);
    expect(rows.map(({ change }) => change)).toEqual([
      ...Array.from({ length: 5 }, () => 'gone'),
      ...Array.from({ length: 4 }, () => 'price'),
      'shape',
    ]);
    expect(rows[0]).toEqual({
      change: 'gone',
      name: 'm16',
      place: 'fsn1',
      before: 'published',
      after: null,
    });
    expect(rows[5]).toEqual({
      change: 'price',
      name: 'm1',
      place: 'fsn1',
      before: '0.06 USD/hour',
      after: '0.24 USD/hour',
    });
    expect(rows[9]).toMatchObject({
      change: 'shape',
      name: 'm6',
      before: '0.06 USD/hour, 2 cpu, 4 GiB',
      after: '0.06 USD/hour, 8 cpu, 16 GiB',
    });
  });

  it('has them as lines in Slack’s format', async () => {
    await holdMachines();
    const { text } = JSON.parse(await sentText('slack')) as { text: string };
    const lines = text.split('\n');
    expect(lines[1]).toMatch(/^• a batch of acme is held for a decision: /);
    expect(lines).toContain('    price m1 in fsn1: 0.06 USD/hour → 0.24 USD/hour');
    expect(lines.slice(-2)).toEqual(['    … 21 more', '    `fleetbook hold show acme`']);
    expect(lines).toHaveLength(14);
  });

  it('has clusters with their changed fields', async () => {
    await scene.catalogue([region('a'), offer('a', 'small')]);
    await scene.organization('org');
    await scene.clusters(['one', 'two', 'three'].map((key) => cluster(key)));
    expect((await scene.clusters([cluster('four')], { missingIsDeleted: true })).outcome).toBe('held');
    const { rows, more } = detailsOf(await sentText());
    expect(more).toBe(0);
    expect(rows.map(({ change, name, place }) => `${change} ${place}/${name}`)).toEqual([
      'gone org/one',
      'gone org/three',
      'gone org/two',
      'new org/four',
    ]);
    expect(rows[0]?.before).toContain('status Active');
    expect(rows[3]?.after).toContain('region a');
    // The other changes of the run are stored and recorded.
    expect(
      await scene.sql`select count(*)::int as n from sync_runs where added = 1 and outcome = 'held'`,
    ).toEqual([{ n: 1 }]);
  });

  it('names the batch that waits now, and its decision', async () => {
    await holdMachines();
    const first = detailsOf(await sentText()).batch;
    await scene.catalogue([region('fsn1'), ...offers('fsn1', 2)]);
    const [younger] = await pendingBatches(scene.store.db);
    expect(younger?.id).toBeGreaterThan(first);
    // No new message: the source is still held.
    await sentText();
    expect(hook.taken).toHaveLength(1);
    await decide(scene.store.db, younger?.id ?? 0, 'rejected', OPERATOR);
    const [alert] = (JSON.parse(await sentText()) as AlertMessage).data.alerts;
    expect(alert).toMatchObject({
      resolution: 'rejected by ada@desk because it is right',
      details: { batch: younger?.id },
    });
  });
});

describe('a sample of a batch', () => {
  const row = (change: string, name: string): HeldSampleRow => ({
    change,
    name,
    place: 'p',
    before: null,
    after: null,
  });

  it('has rows of every kind, in the given order of kinds', () => {
    const rows = [
      ...Array.from({ length: 500 }, (_, index) => row('gone', `g${index}`)),
      row('price', 'p0'),
      ...Array.from({ length: 20 }, (_, index) => row('new', `n${index}`)),
    ];
    const sample = sampleOf(rows, 521);
    expect(sample.total).toBe(521);
    expect(sample.rows.map(({ name }) => name)).toEqual([
      ...['g0', 'g1', 'g2', 'g3', 'g4', 'p0', 'n0', 'n1', 'n2', 'n3'],
    ]);
  });

  it('cuts long names and values', () => {
    const long = 'x'.repeat(100_000);
    const { rows } = sampleOf([{ change: 'new', name: long, place: long, before: null, after: long }], 1);
    expect(JSON.stringify(rows).length).toBeLessThan(600);
    expect(rows[0]?.name).toMatch(/^x{159}…$/);
  });
});

describe('the end of an alert about a held batch', () => {
  const hold = (count: number) =>
    scene.catalogue([region('fsn1'), ...offers('fsn1', count)], { limits: STRICT });
  const evaluate = () => evaluateAlerts(scene.store.db, [], DEFAULT_RULES, scene.now());

  it('names the operator and the reason of an approval, also of a batch that replaced the alert’s batch', async () => {
    await hold(10);
    await hold(2);
    await evaluate();
    await hold(1);
    const [batch] = await pendingBatches(scene.store.db);
    await decide(scene.store.db, batch?.id ?? 0, 'approved', OPERATOR);
    expect(await evaluate()).toMatchObject({
      resolved: [{ resolution: 'approved by ada@desk because it is right' }],
    });
  });

  it('states that a later run replaced an undecided batch', async () => {
    await hold(10);
    await hold(2);
    await evaluate();
    await hold(10);
    expect(await evaluate()).toMatchObject({ resolved: [{ resolution: 'a later run replaced it' }] });
  });
});

it('a message is limited for any number of held batches', () => {
  const value = 'y'.repeat(160);
  const rows = Array.from({ length: 10 }, () => ({
    change: 'price',
    name: value,
    place: value,
    before: value,
    after: value,
  }));
  const alert = (id: number): MessageAlert => ({
    id,
    kind: 'batch_held',
    subject: `s${id}`,
    summary: 'a batch is held',
    details: { rows, more: 4 },
    opened_at: '2026-01-01T00:00:00Z',
    resolved_at: null,
    resolution: null,
    url: null,
    command: `fleetbook hold show s${id}`,
  });
  const message = (count: number): AlertMessage => ({
    type: 'alerts.opened',
    timestamp: '2026-01-01T00:00:00Z',
    data: { alerts: Array.from({ length: count }, (_, id) => alert(id)) },
  });
  const text = (count: number) => (JSON.parse(bodyText(message(count), 'slack')) as { text: string }).text;
  expect(text(4).match(/^ {4}price /gm)).toHaveLength(20);
  expect(text(4).match(/^ {4}… 9 more$/gm)).toHaveLength(4);
  expect(text(300).match(/^ {4}price /gm)).toHaveLength(20);
  expect(text(300)).toContain('… 280 more');
  expect(text(300).length).toBeLessThan(20_000);
  expect(bodyText(message(300), 'standard').length).toBeLessThan(300 * 400 + 100 * 1000);
});
