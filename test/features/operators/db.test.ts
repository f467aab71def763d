import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Way } from '../../../src/domain/operator.ts';
import { hashToken } from '../../../src/domain/token.ts';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import {
  createOperator,
  endOperatorSessions,
  issueToken,
  listOperators,
  setOperatorByOidc,
  setOperatorDisabled,
  setOperatorRole,
} from '../../../src/features/operators/db/operators.ts';
import { beginSession, liveSessions } from '../../../src/features/operators/db/sessions.ts';
import {
  findTokens,
  listOperatorTokens,
  revokeOperatorToken,
  rotateOperatorToken,
  storeTokenUse,
} from '../../../src/features/operators/db/tokens.ts';
import { OPERATOR, openScene, type Scene } from '../../sync/scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

const TERMS = { name: null, expiresAt: null };
const create = (by = OPERATOR) =>
  createOperator(scene.store.db, by, { name: 'ada', role: 'viewer', token: TERMS });
const stored = async () =>
  (await scene.sql`select role, disabled_at is not null as disabled from operators`)[0];
const log = async () => (await auditRecords(scene.store.db, {})).rows.toReversed();

/** Opens a session of ada. The result tells if it is live. */
async function session(): Promise<() => Promise<boolean>> {
  const key = hashToken('the session');
  const [ada] = await scene.sql<{ id: number }[]>`select id from operators where name = 'ada'`;
  const now = new Date();
  await beginSession(scene.store.db, { key, operatorId: ada?.id ?? 0, tokenId: null }, now, new Date(0));
  const terms = { beganAfter: new Date(0), usedAfter: new Date(0) };
  return async () => (await liveSessions(scene.store.db, [key], terms)).length > 0;
}

describe('an operator', () => {
  it('is created once for each name', async () => {
    const made = await Promise.all([create(), create(), create()]);
    expect(made.filter((each) => each !== undefined)).toHaveLength(1);
    expect(await listOperators(scene.store.db)).toEqual([
      {
        name: 'ada',
        role: 'viewer',
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/),
        disabledAt: null,
        lastSeenAt: null,
        verifiedAddress: null,
        signsInBy: 'token',
        tokens: 1,
      },
    ]);
    expect(await log()).toHaveLength(1);
  });

  it('is changed; disabling, enabling, OpenID Connect and a request end all sessions', async () => {
    const token = (await create())?.id;
    const { db } = scene.store;
    expect(await setOperatorRole(db, OPERATOR, 'ada', 'admin')).toBe('changed');
    expect(await setOperatorRole(db, OPERATOR, 'ada', 'admin')).toBe('unchanged');
    expect(await stored()).toEqual({ role: 'admin', disabled: false });
    const isLive = await session();
    expect(await isLive()).toBe(true);
    expect(await setOperatorDisabled(db, OPERATOR, 'ada', true)).toBe('changed');
    expect(await setOperatorDisabled(db, OPERATOR, 'ada', true)).toBe('unchanged');
    expect(await stored()).toMatchObject({ disabled: true });
    await scene.sql`delete from operator_sessions`;
    await session();
    expect(await isLive()).toBe(false);
    expect(await setOperatorDisabled(db, OPERATOR, 'ada', false)).toBe('changed');
    expect(await isLive()).toBe(false);
    for (const end of [endOperatorSessions, setOperatorByOidc]) {
      await session();
      expect(await isLive()).toBe(true);
      expect(await end(db, OPERATOR, 'ada')).toBe('changed');
      expect(await isLive()).toBe(false);
    }
    for (const change of [
      setOperatorRole(db, OPERATOR, 'bob', 'admin'),
      setOperatorByOidc(db, OPERATOR, 'bob'),
      setOperatorDisabled(db, OPERATOR, 'bob', true),
    ]) {
      expect(await change).toBe('unknown');
    }
    expect((await log()).map(({ action, subject, details }) => [action, subject.id, details])).toEqual([
      ['operator.create', 'ada', { role: 'viewer', token, ...TERMS }],
      ['operator.set-role', 'ada', { role: 'admin' }],
      ['operator.disable', 'ada', {}],
      ['operator.enable', 'ada', {}],
      ['operator.end-sessions', 'ada', {}],
      ['operator.use-oidc', 'ada', {}],
    ]);
  });

  it('does not change if the row of the audit log cannot be written', async () => {
    const token = (await create())?.id ?? 0;
    const before = await scene.everything();
    const refused = { ...OPERATOR, how: 'by hand' as Way };
    const { db } = scene.store;
    for (const change of [
      () => createOperator(db, refused, { name: 'bob', role: 'admin', token: TERMS }),
      () => issueToken(db, refused, 'ada', TERMS),
      () => revokeOperatorToken(db, refused, token),
      () => rotateOperatorToken(db, refused, token, 0),
      () => setOperatorRole(db, refused, 'ada', 'admin'),
      () => setOperatorByOidc(db, refused, 'ada'),
      () => setOperatorDisabled(db, refused, 'ada', true),
    ]) {
      await expect(change()).rejects.toMatchObject({ cause: { code: '23514' } });
    }
    expect(await scene.everything()).toEqual(before);
  });

  it('is never deleted, so names and token ids in the audit log stay unique', async () => {
    await create();
    for (const table of ['operators', 'operator_tokens'])
      await expect(scene.store.sql`delete from ${scene.store.sql(table)}`).rejects.toMatchObject({
        code: '42501',
      });
    await expect(scene.store.sql`update operators set role = 'king'`).rejects.toMatchObject({
      code: '23514',
    });
  });
});

describe('a token of an operator', () => {
  const found = async (token: string | undefined) =>
    (await findTokens(scene.store.db, [hashToken(token ?? '')]))[0];

  it('is found by its hash, with the current data of its operator', async () => {
    const made = await create();
    expect(await found(made?.token)).toMatchObject({
      key: hashToken(made?.token ?? ''),
      id: made?.id,
      name: 'ada',
      role: 'viewer',
      state: 'good',
    });
    expect(await found('fbo_another')).toBeUndefined();
    const everything = JSON.stringify(
      await scene.sql`
      select t::text as row from operator_tokens t union all select a::text from audit_log a`,
    );
    expect(everything).not.toContain('fbo_');
    await setOperatorDisabled(scene.store.db, OPERATOR, 'ada', true);
    expect(await found(made?.token)).toMatchObject({ state: 'disabled' });
  });

  it('has a last use, to the minute', async () => {
    const made = await create();
    const { db } = scene.store;
    expect(await found(made?.token)).toMatchObject({ isUseStale: true });
    await storeTokenUse(db, made?.id ?? 0);
    expect(await found(made?.token)).toMatchObject({ isUseStale: false });
    const [token] = await listOperatorTokens(db, 'ada');
    expect(token?.lastUsedAt).toMatch(/Z$/);
    expect(await listOperators(db)).toMatchObject([{ lastSeenAt: token?.lastUsedAt }]);
    await scene.sql`update operator_tokens set last_used_at = now() - interval '61 s'`;
    expect(await found(made?.token)).toMatchObject({ isUseStale: true });
  });

  it('is rotated at once or with a grace period, which never extends its expiry', async () => {
    const made = await create();
    const { db } = scene.store;
    const first = await rotateOperatorToken(db, OPERATOR, made?.id ?? 0, 3_600_000);
    if (typeof first === 'string') return expect.unreachable(first);
    expect(await found(made?.token)).toMatchObject({ state: 'good' });
    expect(Date.parse(first.oldExpiresAt ?? '')).toBeGreaterThan(Date.now());
    await scene.sql`update operator_tokens set expires_at = now() + interval '1 min' where id = ${first.id}`;
    const second = await rotateOperatorToken(db, OPERATOR, first.id, 3_600_000);
    if (typeof second === 'string') return expect.unreachable(second);
    expect(second.oldExpiresAt).toBe(second.expiresAt);
    const third = await rotateOperatorToken(db, OPERATOR, second.id, 0);
    expect(third).toMatchObject({ oldExpiresAt: null, expiresAt: second.expiresAt });
    expect(await found(second.token)).toMatchObject({ state: 'revoked' });
    expect(await rotateOperatorToken(db, OPERATOR, second.id, 0)).toBe('revoked');
    await scene.sql`update operator_tokens set expires_at = now() where revoked_at is null`;
    expect(await rotateOperatorToken(db, OPERATOR, first.id, 0)).toBe('expired');
    expect(await rotateOperatorToken(db, OPERATOR, 99, 0)).toBe('unknown');
  });

  it('is issued to an account of OpenID Connect, which the person then loses', async () => {
    await scene.sql`insert into operators (name, role, oidc_issuer, oidc_subject, verified_address)
      values ('ada', 'viewer', 'https://issuer.example', '7', 'ada@example.com')`;
    const isLive = await session();
    expect(await issueToken(scene.store.db, OPERATOR, 'bob', TERMS)).toBeUndefined();
    const issued = await issueToken(scene.store.db, OPERATOR, 'ada', { ...TERMS, name: 'laptop' });
    expect(issued).toMatchObject({ operator: 'ada', name: 'laptop' });
    expect(await isLive()).toBe(false);
    expect(await listOperators(scene.store.db)).toMatchObject([
      { signsInBy: 'token', verifiedAddress: null, tokens: 1 },
    ]);
    expect((await log()).at(-1)).toMatchObject({
      action: 'operator.create-token',
      details: { token: issued?.id, name: 'laptop', signedInBy: 'oidc' },
    });
  });
});
