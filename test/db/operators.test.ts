import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createOperator,
  setOperatorDisabled,
  setOperatorPassword,
  setOperatorRole,
} from '../../src/db/queries/operators.ts';
import { auditRecords } from '../../src/db/reads/audit.ts';
import { listOperators } from '../../src/db/reads/operators.ts';
import type { Way } from '../../src/domain/operator.ts';
import { OPERATOR, openScene, type Scene } from '../sync/scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const HASH = '$scrypt$of ada';
const create = (by = OPERATOR) =>
  createOperator(scene.store.db, by, { name: 'ada', role: 'viewer', passwordHash: HASH });
const stored = async () =>
  (
    await scene.sql`select role, password_hash, disabled_at is not null as disabled, session_epoch from operators`
  )[0];
const log = async () => (await auditRecords(scene.store.sql, {})).rows.toReversed();

describe('an operator', () => {
  it('is made once under a name', async () => {
    expect(await Promise.all([create(), create(), create()])).toEqual(
      expect.arrayContaining([true, false, false]),
    );
    expect(await listOperators(scene.store.sql)).toEqual([
      {
        name: 'ada',
        role: 'viewer',
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/),
        disabledAt: null,
        lastSeenAt: null,
        verifiedAddress: null,
        signsInBy: 'password',
      },
    ]);
    expect(await log()).toHaveLength(1);
  });

  it('is changed, and every session ends by a new password and by being disabled or enabled', async () => {
    await create();
    const { db } = scene.store;
    expect(await setOperatorRole(db, OPERATOR, 'ada', 'admin')).toBe('changed');
    expect(await setOperatorRole(db, OPERATOR, 'ada', 'admin')).toBe('unchanged');
    expect(await stored()).toMatchObject({ role: 'admin', session_epoch: 1 });
    expect(await setOperatorPassword(db, OPERATOR, 'ada', '$scrypt$new')).toBe('changed');
    expect(await stored()).toMatchObject({ password_hash: '$scrypt$new', session_epoch: 2 });
    expect(await setOperatorDisabled(db, OPERATOR, 'ada', true)).toBe('changed');
    expect(await setOperatorDisabled(db, OPERATOR, 'ada', true)).toBe('unchanged');
    expect(await stored()).toMatchObject({ disabled: true, session_epoch: 3 });
    expect(await setOperatorDisabled(db, OPERATOR, 'ada', false)).toBe('changed');
    expect(await stored()).toMatchObject({ disabled: false, session_epoch: 4 });
    for (const change of [
      setOperatorRole(db, OPERATOR, 'bob', 'admin'),
      setOperatorPassword(db, OPERATOR, 'bob', HASH),
      setOperatorDisabled(db, OPERATOR, 'bob', true),
    ]) {
      expect(await change).toBe('unknown');
    }
    expect((await log()).map(({ action, subject, details }) => [action, subject.id, details])).toEqual([
      ['operator.create', 'ada', { role: 'viewer' }],
      ['operator.set-role', 'ada', { role: 'admin' }],
      ['operator.set-password', 'ada', {}],
      ['operator.disable', 'ada', {}],
      ['operator.enable', 'ada', {}],
    ]);
    const everything = JSON.stringify(await scene.sql`select a::text as row from audit_log a`);
    expect(everything).not.toContain('scrypt');
  });

  it('stays as it is when the row of the audit log cannot be written', async () => {
    await create();
    const before = await scene.everything();
    const refused = { ...OPERATOR, how: 'by hand' as Way };
    const { db } = scene.store;
    for (const change of [
      () => createOperator(db, refused, { name: 'bob', role: 'admin', passwordHash: HASH }),
      () => setOperatorRole(db, refused, 'ada', 'admin'),
      () => setOperatorPassword(db, refused, 'ada', '$scrypt$new'),
      () => setOperatorDisabled(db, refused, 'ada', true),
    ]) {
      await expect(change()).rejects.toMatchObject({ cause: { code: '23514' } });
    }
    expect(await scene.everything()).toEqual(before);
  });

  it('is never deleted: a name in the audit log stays theirs', async () => {
    await create();
    await expect(scene.store.sql`delete from operators`).rejects.toMatchObject({ code: '42501' });
    await expect(scene.store.sql`update operators set role = 'king'`).rejects.toMatchObject({
      code: '23514',
    });
  });
});
