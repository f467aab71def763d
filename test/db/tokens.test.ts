import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createOrganization, findOrganization, firstOrganization } from '../../src/db/organizations.ts';
import { createToken, revokeToken, tokenWorks } from '../../src/db/tokens.ts';
import { SCOPES } from '../../src/domain/scope.ts';
import { hashToken, isWellFormedToken, newToken } from '../../src/domain/token.ts';
import { openScene, type Scene } from '../sync/scene.ts';

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
