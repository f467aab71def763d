/** The transaction of each operator's change writes its audit row, and rows stay. */
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Administration, administration } from '../../src/app/actions/administration.ts';
import { storeDecided } from '../../src/app/actions/batch.ts';
import { audit } from '../../src/db/audit.ts';
import { openStore } from '../../src/db/connection/connect.ts';
import { decide, undoRejection } from '../../src/db/held-batches.ts';
import { findOrganization } from '../../src/db/organizations.ts';
import { acceptPrice } from '../../src/db/prices/prices.ts';
import type { Decider, Way } from '../../src/domain/operator.ts';
import { SCOPES } from '../../src/domain/scope.ts';
import { auditRecords } from '../../src/features/console/queries/audit.ts';
import { disableSource, enableSource } from '../../src/sync/runs/disabled.ts';
import { retireSource } from '../../src/sync/runs/retire-source.ts';
import { type HeldScene, LINODE, openHeldScene } from '../app/held-scene.ts';
import { cluster } from '../sync/clusters/rows.ts';
import { OPERATOR, offer, offers, region } from '../sync/scene.ts';

let scene: HeldScene;
beforeAll(async () => {
  scene = await openHeldScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const ADA: Decider = { by: 'ada', how: 'console', address: '192.0.2.7', reason: 'as agreed' };
/** The table rejects rows of this operator, so the change before has to be rolled back. */
const REFUSED: Decider = { ...ADA, how: 'by hand' as Way };

const changes = (by = ADA): Administration => administration(scene.store.db, by);
const log = async () => (await auditRecords(scene.store.db, {})).rows.toReversed();
const auditRows = async () =>
  (await log()).map(({ action, subject, by }) => `${by} ${action} ${subject.kind} ${subject.id}`);
const organization = async (slug: string) =>
  (await findOrganization(scene.store.db, slug)) ?? expect.unreachable(slug);

describe('organizations, their users and their tokens', () => {
  it('write a row with who, how, from where, what and why', async () => {
    await changes().createOrganization('acme', 'Acme');
    expect(await log()).toEqual([
      {
        id: 1,
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/),
        by: 'ada',
        how: 'console',
        tokenId: null,
        address: '192.0.2.7',
        action: 'organization.create',
        subject: { kind: 'organization', id: 'acme' },
        reason: 'as agreed',
        details: { name: 'Acme' },
      },
    ]);
  });

  it('have an action for each change, and rows contain no secret', async () => {
    await changes().createOrganization('acme', 'Acme');
    await changes().renameOrganization('acme', 'Acme Ltd');
    const acme = await organization('acme');
    const first = await changes().createToken(acme, { scopes: SCOPES });
    const second = await changes().rotateToken(first.id, 0);
    if (typeof second === 'string') expect.unreachable(second);
    await changes().revokeToken(second.id);
    const user = { firstName: 'Grace', lastName: 'Hopper' };
    await scene.clusters([cluster('c', { organization: 'acme', user })]);
    await changes().renameUser(acme, 1, { firstName: 'G', lastName: 'H' });
    await changes().deleteUser(acme, 2);
    await changes().deleteOrganization('acme');
    expect(await auditRows()).toEqual([
      'ada organization.create organization acme',
      'ada organization.rename organization acme',
      'ada token.create token 1',
      'ada token.rotate token 1',
      'ada token.revoke token 2',
      'ada user.rename user 1',
      'ada user.delete user 2',
      'ada organization.delete organization acme',
    ]);
    expect((await log()).map(({ details }) => details).slice(2, 4)).toEqual([
      { organization: 'acme', scopes: [...SCOPES], name: null, expiresAt: null },
      { organization: 'acme', successor: 2, name: null, oldExpiresAt: null },
    ]);
    const everything = JSON.stringify(await scene.sql`select a::text as row from audit_log a`);
    for (const secret of [first.token, second.token]) expect(everything).not.toContain(secret.slice(3, 20));
    expect(everything).not.toMatch(/Grace|Hopper/);
  });

  it('write no row if nothing changes', async () => {
    await changes().createOrganization('acme', 'Acme');
    const acme = await organization('acme');
    const { id } = await changes().createToken(acme, { scopes: SCOPES });
    await changes().revokeToken(id);
    const before = await log();
    expect(await changes().createOrganization('acme', 'Other')).toBeUndefined();
    expect(await changes().renameOrganization('unknown', 'x')).toBeUndefined();
    expect(await changes().deleteOrganization('unknown')).toBeUndefined();
    expect(await changes().revokeToken(id)).toBe('was revoked');
    expect(await changes().rotateToken(id, 0)).toBe('revoked');
    expect(await changes().deleteUser(acme, 4711)).toBeUndefined();
    expect(await log()).toEqual(before);
  });

  it('do not change if the row cannot be written', async () => {
    await changes().createOrganization('acme', 'Acme');
    const acme = await organization('acme');
    const { id } = await changes().createToken(acme, { scopes: SCOPES });
    await scene.clusters([cluster('c', { organization: 'acme' })]);
    const before = await scene.everything();
    const refused = changes(REFUSED);
    for (const change of [
      () => refused.createOrganization('other', 'Other'),
      () => refused.renameOrganization('acme', 'x'),
      () => refused.deleteOrganization('acme'),
      () => refused.createToken(acme, { scopes: SCOPES }),
      () => refused.revokeToken(id),
      () => refused.rotateToken(id, 1000),
      () => refused.deleteUser(acme, 1),
    ]) {
      await expect(change()).rejects.toMatchObject({ cause: { code: '23514' } });
    }
    expect(await scene.everything()).toEqual(before);
  });

  it('have no row if the change fails afterwards', async () => {
    const failing = scene.store.db.transaction(async (tx) => {
      await audit(tx, ADA, { action: 'organization.create', subject: { kind: 'organization', id: 'x' } });
      throw new Error('too late');
    });
    await expect(failing).rejects.toThrow('too late');
    expect(await log()).toEqual([]);
  });
});

describe('decisions', () => {
  const whole = [region('a'), ...offers('a', 10)];
  const few = [region('a'), ...offers('a', 2)];
  async function held() {
    await scene.catalogue(whole, LINODE);
    await scene.catalogue(few, LINODE);
    return (await scene.onlyPending()).id;
  }
  const statuses = () => scene.sql`select status, decided_by from held_batches order by id`;

  it('about a held batch, and their undo, are recorded with source and guards', async () => {
    const id = await held();
    const { db } = scene.store;
    expect(await decide(db, id, 'rejected', ADA)).toBe(true);
    expect(await decide(db, id, 'rejected', ADA)).toBe(false);
    expect(await undoRejection(db, id, { ...ADA, by: 'bob', reason: undefined })).toBe(true);
    expect(await undoRejection(db, id, ADA)).toBe(false);
    expect((await scene.approve('linode', id)).outcome).toBe('changed');
    expect((await scene.approve('linode', id)).outcome).toBe('superseded');
    await storeDecided(scene.config, scene.store, scene.configured('linode'), {
      kind: 'undo',
      batchId: id,
      decider: OPERATOR,
    });
    expect(await auditRows()).toEqual([
      `ada hold.reject batch ${id}`,
      `bob hold.undo-rejection batch ${id}`,
      `ada@desk hold.approve batch ${id}`,
      `ada@desk hold.undo-approval batch ${id}`,
    ]);
    const [rejection, undone, approval] = await log();
    expect(rejection).toMatchObject({
      how: 'console',
      reason: 'as agreed',
      details: { source: 'linode', guards: expect.arrayContaining(['removed']) },
    });
    expect(undone).toMatchObject({ reason: null });
    expect(approval).toMatchObject({ how: 'cli', address: 'ada@desk', details: { source: 'linode' } });
  });

  it('about a held batch fail if the row cannot be written, and store nothing', async () => {
    const id = await held();
    const { db } = scene.store;
    await expect(decide(db, id, 'rejected', REFUSED)).rejects.toMatchObject({ cause: { code: '23514' } });
    const machines = await scene.rows('machines', 'held_batches', 'held_items', 'regions');
    await expect(
      storeDecided(scene.config, scene.store, scene.configured('linode'), {
        kind: 'approve',
        batchId: id,
        decider: REFUSED,
      }),
    ).rejects.toMatchObject({ cause: { code: '23514' } });
    expect(await scene.rows('machines', 'held_batches', 'held_items', 'regions')).toEqual(machines);
    expect(await statuses()).toEqual([{ status: 'pending', decided_by: null }]);
    expect(await log()).toEqual([]);
  });
  it('about one price are recorded once', async () => {
    await scene.catalogue(whole, LINODE);
    const many = [region('a'), offer('a', 'm1', { amount: '0.6' }), ...offers('a', 10).slice(1)];
    await scene.catalogue(many, LINODE);
    const [row] = await scene.sql`select row_key, price from quarantined_rows where price is not null`;
    const { row_key, price } = row ?? expect.unreachable('no price is quarantined');
    const accept = (amount: string) => acceptPrice(scene.store.db, 'linode', row_key, amount, ADA);
    expect(await accept('1')).toMatchObject({ outcome: 'other' });
    expect(await accept(price.amount)).toMatchObject({ outcome: 'accepted' });
    expect(await accept(price.amount)).toMatchObject({ outcome: 'accepted' });
    expect(await auditRows()).toEqual(['ada price.accept source linode']);
    expect((await log())[0]?.details).toEqual({ machine: row_key, price });
  });

  it('to disable and to enable a source are recorded, and fail if the row cannot be written', async () => {
    await scene.catalogue(whole, LINODE);
    const { db } = scene.store;
    const before = await scene.everything();
    await expect(disableSource(db, 'linode', REFUSED)).rejects.toThrow();
    expect(await scene.everything()).toEqual(before);
    await disableSource(db, 'linode', ADA);
    await expect(enableSource(db, 'linode', REFUSED)).rejects.toThrow();
    expect(await enableSource(db, 'linode', ADA)).toBe(true);
    expect(await enableSource(db, 'linode', ADA)).toBe(false);
    expect((await auditRows()).toSorted()).toEqual([
      'ada source.disable source linode',
      'ada source.enable source linode',
    ]);
  });

  it('to retire a source are recorded with what it removed, and fail if the row cannot be written', async () => {
    await scene.catalogue(whole, LINODE);
    const now = scene.now().toISOString();
    const before = await scene.everything();
    await expect(retireSource(scene.store, 'linode', now, REFUSED)).rejects.toThrow();
    expect(await scene.everything()).toEqual(before);
    await retireSource(scene.store, 'linode', now, ADA);
    expect(await retireSource(scene.store, 'unknown', now, ADA)).toBeUndefined();
    expect(await auditRows()).toEqual(['ada source.retire source linode']);
    expect((await log())[0]?.details).toEqual({ kind: 'catalogue', published: 10, rates: 0 });
  });
});

describe('the log', () => {
  const STATEMENTS = [
    "update audit_log set by = 'unknown'",
    'delete from audit_log',
    'truncate audit_log',
    'update audit_log set id = default where false',
  ];

  it.each(STATEMENTS)('rejects changes of rows, by the worker and by the owner: %s', async (statement) => {
    await changes().createOrganization('acme', 'Acme');
    const before = await scene.rows('audit_log');
    for (const sql of [scene.store.sql, scene.sql]) {
      await expect(sql.unsafe(statement)).rejects.toMatchObject({ code: '42501' });
    }
    expect(await scene.rows('audit_log')).toEqual(before);
  });

  it('is not readable for readers, and neither are the operators', async () => {
    await using reader = openStore({ url: scene.db.url, role: 'reader' });
    for (const statement of [
      'select from audit_log',
      'select from operators',
      "insert into audit_log (by, how, action, subject_kind, subject_id) values ('x', 'cli', 'x', 'x', 'x')",
      "select nextval('audit_log_id_seq')",
    ]) {
      await expect(reader.sql.unsafe(statement)).rejects.toMatchObject({ code: '42501' });
    }
  });

  it('has pages, and filters by time and subject', async () => {
    for (const slug of ['a', 'b', 'c']) await changes().createOrganization(slug, slug);
    await changes().renameOrganization('b', 'B');
    const ids = async (query: Parameters<typeof auditRecords>[1]) => {
      const { total, rows } = await auditRecords(scene.store.db, query);
      return [total, rows.map(({ id }) => id)];
    };
    expect(await ids({ limit: 2 })).toEqual([4, [4, 3]]);
    expect(await ids({ limit: 2, before: 3 })).toEqual([4, [2, 1]]);
    expect(await ids({ subject: { kind: 'organization', id: 'b' } })).toEqual([2, [4, 2]]);
    expect(await ids({ since: new Date(Date.now() + 60_000) })).toEqual([0, []]);
    expect(await ids({ since: new Date(Date.now() - 60_000) })).toEqual([4, [4, 3, 2, 1]]);
  });
});
