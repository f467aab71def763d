import { check, foreignKey, index, pgTable, sql, unique } from '../connection/drizzle.ts';
import { bytes, instant, reference } from './shared-columns.ts';

export const organizations = pgTable(
  'organizations',
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    slug: c.text('slug').notNull().unique(),
    name: c.text('name').notNull(),
    clustersVersion: c.bigint('clusters_version', { mode: 'number' }).notNull().default(1),
    publishedVersion: c.bigint('published_version', { mode: 'number' }).notNull().default(0),
    /** The version that the changes feed has covered. A first version has no changes. */
    announcedVersion: c.bigint('told_version', { mode: 'number' }).notNull().default(1),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** Tombstone: readers get nothing of a deleted organization. */
    deletedAt: instant('deleted_at'),
  }),
  (t) => [
    index('organizations_dirty').on(t.id).where(sql`published_version < clusters_version`),
    index('organizations_untold').on(t.id).where(sql`told_version < clusters_version`),
  ],
);

/**
 * Creators of clusters, by the names that control planes report. A user that an operator renamed or deleted keeps its row, for
 * the next report of the name. `replaced_by` is the user to show instead; a deleted user is replaced by one with two empty
 * names. A trigger keeps clusters from referring to a replaced user.
 */
export const users = pgTable(
  'users',
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: reference('organization_id', () => organizations.id),
    firstName: c.text('first_name').notNull(),
    lastName: c.text('last_name').notNull(),
    replacedBy: c.integer('replaced_by'),
  }),
  (t) => [
    unique('users_natural_key').on(t.organizationId, t.firstName, t.lastName),
    unique('users_of_organization').on(t.organizationId, t.id),
    index('users_replaced').on(t.replacedBy).where(sql`replaced_by is not null`),
    foreignKey({ columns: [t.organizationId, t.replacedBy], foreignColumns: [t.organizationId, t.id] }),
    check('users_replace_others', sql`${t.replacedBy} <> ${t.id}`),
  ],
);

/** API tokens. Only the SHA-256 is stored. `version` rises with every change, so a revocation replaces cached copies. */
export const tokens = pgTable(
  'tokens',
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: reference('organization_id', () => organizations.id),
    name: c.text('name'),
    hash: bytes('hash').notNull().unique(),
    scopes: c.text('scopes').array().notNull(),
    createdAt: instant('created_at').notNull().defaultNow(),
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
    lastUsedAt: instant('last_used_at'),
    version: c.bigint('version', { mode: 'number' }).notNull().default(1),
    publishedVersion: c.bigint('published_version', { mode: 'number' }).notNull().default(0),
  }),
  (t) => [
    index('tokens_by_organization').on(t.organizationId),
    index('tokens_dirty').on(t.id).where(sql`published_version < version`),
  ],
);
