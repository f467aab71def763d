import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createOrganization,
  deleteOrganization,
  findOrganization,
  firstOrganization,
  renameOrganization,
} from '../../src/db/organizations.ts';
import { createToken, revokeToken, rotateToken, tokenWorks } from '../../src/db/tokens.ts';
import { SCOPES } from '../../src/domain/scope.ts';
import { hashToken, isWellFormedToken, newToken } from '../../src/domain/token.ts';
import { cluster } from '../sync/clusters/rows.ts';
import { offer, openScene, region, type Scene } from '../sync/scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

describe('a token', () => {
  let organizationId: number;
  beforeEach(async () => {
    organizationId = await scene.organization('org');
  });
  const inAnHour = () => new Date(Date.now() + 3_600_000);
  const works = (token: string, id = organizationId) => tokenWorks(scene.store.db, token, id);

  it('is stored as its SHA-256 only', async () => {
    const { id, token } = await createToken(scene.store.db, { organizationId, scopes: SCOPES });
    expect(isWellFormedToken(token)).toBe(true);
    const [row = expect.unreachable()] = await scene.sql`select * from tokens`;
    expect(row).toMatchObject({
      id,
      organization_id: organizationId,
      scopes: ['machines:read', 'clusters:read'],
      expires_at: null,
      revoked_at: null,
      version: '1',
      published_version: '0',
    });
    expect(Buffer.from(row.hash).toString('hex')).toBe(hashToken(token));
    const everything = JSON.stringify(await scene.sql`select t::text as row from tokens t`);
    expect(everything).not.toContain(token.slice(3, 20));
  });

  it('is valid for its organization until it expires', async () => {
    const other = await scene.organization('other');
    const { token } = await createToken(scene.store.db, {
      organizationId,
      scopes: ['clusters:read'],
      expiresAt: inAnHour(),
    });
    expect([await works(token), await works(token, other), await works(newToken())]).toEqual([
      true,
      false,
      false,
    ]);
    await scene.sql`update tokens set expires_at = now()`;
    expect(await works(token)).toBe(false);
  });

  it('does not work any more when its organization is deleted', async () => {
    const { token } = await createToken(scene.store.db, { organizationId, scopes: SCOPES });
    await scene.sql`update organizations set deleted_at = now()`;
    expect(await works(token)).toBe(false);
  });

  it('is revoked once, and leaves a tombstone with a higher version', async () => {
    const [one, two] = [
      await createToken(scene.store.db, { organizationId, scopes: SCOPES }),
      await createToken(scene.store.db, { organizationId, scopes: SCOPES }),
    ];
    expect(await revokeToken(scene.store.db, one.id)).toBe('revoked');
    expect([await works(one.token), await works(two.token)]).toEqual([false, true]);
    const before = await scene.rows('tokens');
    expect(await revokeToken(scene.store.db, one.id)).toBe('was revoked');
    expect(await revokeToken(scene.store.db, 4711)).toBeUndefined();
    expect(await scene.rows('tokens')).toEqual(before);
    expect(await scene.sql`select version from tokens order by id`).toEqual([
      { version: '2' },
      { version: '1' },
    ]);
  });

  it('has one revocation among many concurrent ones', async () => {
    const { id } = await createToken(scene.store.db, { organizationId, scopes: SCOPES });
    const outcomes = await Promise.all(Array.from({ length: 6 }, () => revokeToken(scene.store.db, id)));
    expect(outcomes.filter((outcome) => outcome === 'revoked')).toHaveLength(1);
    expect(await scene.sql`select version from tokens`).toEqual([{ version: '2' }]);
  });

  it('is rotated at once or with a grace period, which never extends its expiry', async () => {
    const { db } = scene.store;
    const rotated = async (id: number, graceMs: number) => {
      const made = await rotateToken(db, id, graceMs);
      return typeof made === 'string' ? expect.unreachable(made) : made;
    };
    const terms = { organizationId, name: 'nightly', scopes: ['machines:read'] as const };
    const old = await createToken(db, { ...terms, expiresAt: inAnHour() });
    const second = await rotated(old.id, 60_000);
    expect(second).toMatchObject({ organization: 'org', name: 'nightly', scopes: ['machines:read'] });
    const left = Date.parse(second.oldExpiresAt ?? '') - Date.now();
    expect(left).toBeGreaterThan(30_000);
    expect(left).toBeLessThanOrEqual(60_000);
    expect([await works(old.token), await works(second.token)]).toEqual([true, true]);
    const third = await rotated(second.id, 86_400_000);
    expect(third.oldExpiresAt).toBe(second.expiresAt);
    const fourth = await rotated(third.id, 0);
    expect(fourth).toMatchObject({ oldExpiresAt: null, expiresAt: second.expiresAt });
    expect([await works(third.token), await works(fourth.token)]).toEqual([false, true]);
    const before = await scene.rows('tokens');
    expect(await rotateToken(db, third.id, 0)).toBe('revoked');
    expect(await rotateToken(db, 4711, 0)).toBe('unknown');
    expect(await scene.rows('tokens')).toEqual(before);
    await scene.sql`update tokens set expires_at = now() where id = ${fourth.id}`;
    expect(await rotateToken(db, fourth.id, 0)).toBe('expired');
  });

  it('needs an existing organization', async () => {
    await expect(createToken(scene.store.db, { organizationId: 4711, scopes: SCOPES })).rejects.toThrow();
    expect(await scene.sql`select from tokens`).toHaveLength(0);
  });
});

describe('an organization', () => {
  const { slug, name } = { slug: 'org', name: 'Organization' };

  it('is created once, also by concurrent calls', async () => {
    const made = await Promise.all(
      Array.from({ length: 6 }, () => createOrganization(scene.store.db, slug, name)),
    );
    expect(made.filter((one) => one !== undefined)).toEqual([{ id: expect.any(Number), slug, name }]);
    expect(await createOrganization(scene.store.db, slug, 'Other')).toBeUndefined();
  });

  it('is found by its exact slug until it is deleted; the slug stays taken', async () => {
    expect(await findOrganization(scene.store.db, slug)).toBeUndefined();
    const made = await createOrganization(scene.store.db, slug, name);
    expect(await findOrganization(scene.store.db, slug)).toEqual(made);
    expect(await findOrganization(scene.store.db, 'ORG')).toBeUndefined();
    expect(await findOrganization(scene.store.db, "org' or ''='")).toBeUndefined();
    await scene.sql`update organizations set deleted_at = now()`;
    expect(await findOrganization(scene.store.db, slug)).toBeUndefined();
    expect(await createOrganization(scene.store.db, slug, name)).toBeUndefined();
  });

  it('is renamed without a new version, since no document has its name', async () => {
    await scene.organization(slug);
    const versions = () => scene.sql`select clusters_version from organizations`;
    const before = await versions();
    expect(await renameOrganization(scene.store.db, slug, 'Other')).toMatchObject({ slug, name: 'Other' });
    expect(await renameOrganization(scene.store.db, 'unknown', 'x')).toBeUndefined();
    expect(await versions()).toEqual(before);
  });

  it('is deleted with its clusters and tokens, and leaves a tombstone', async () => {
    const { db } = scene.store;
    const id = await scene.organization(slug);
    const other = await scene.organization('other');
    await scene.catalogue([region('a'), offer('a', 'x')]);
    await scene.clusters([cluster('c1'), cluster('c2'), cluster('c3', { organization: 'other' })]);
    const { token } = await createToken(db, { organizationId: id, scopes: SCOPES });
    const kept = await createToken(db, { organizationId: other, scopes: SCOPES });
    const version = async () =>
      Number(
        (await scene.sql`select clusters_version from organizations where id = ${id}`)[0]?.clusters_version,
      );
    const before = await version();
    expect(await deleteOrganization(db, slug)).toMatchObject({ id, clusters: 2, tokens: 1 });
    expect(await version()).toBe(before + 1);
    expect([await tokenWorks(db, token, id), await tokenWorks(db, kept.token, other)]).toEqual([false, true]);
    expect(await scene.sql`select source_key from clusters where retired_at is null`).toEqual([
      { source_key: 'c3' },
    ]);
    expect(await scene.sql`select from clusters`).toHaveLength(3);
    expect(await deleteOrganization(db, slug)).toBeUndefined();
    expect(await renameOrganization(db, slug, 'x')).toBeUndefined();
    expect(await createOrganization(db, slug, name)).toBeUndefined();
  });

  it('is the first if it is the oldest that is not deleted', async () => {
    expect(await firstOrganization(scene.store.db)).toBeUndefined();
    const [one, two] = [
      await createOrganization(scene.store.db, 'one', 'One'),
      await createOrganization(scene.store.db, 'two', 'Two'),
    ];
    expect(await firstOrganization(scene.store.db)).toEqual(one);
    await scene.sql`update organizations set deleted_at = now() where slug = 'one'`;
    expect(await firstOrganization(scene.store.db)).toEqual(two);
  });
});
