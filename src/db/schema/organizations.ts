/** Who is served: organizations, their people and their tokens. */
import {
  bigint,
  check,
  foreignKey,
  index,
  integer,
  pgTable,
  sql,
  text,
  unique,
} from '../connection/drizzle.ts';
import { bytes, instant } from './columns.ts';

export const organizations = pgTable(
  'organizations',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    slug: text('slug').notNull().unique(),
    name: text('name').notNull(),
    clustersVersion: bigint('clusters_version', { mode: 'number' }).notNull().default(1),
    publishedVersion: bigint('published_version', { mode: 'number' }).notNull().default(0),
    /** The version of which the changes feed has told; of the first there is nothing to tell. */
    toldVersion: bigint('told_version', { mode: 'number' }).notNull().default(1),
    createdAt: instant('created_at').notNull().defaultNow(),
    /** A tombstone: nothing of a deleted organization is served. */
    deletedAt: instant('deleted_at'),
  },
  (t) => [
    index('organizations_dirty').on(t.id).where(sql`published_version < clusters_version`),
    index('organizations_untold').on(t.id).where(sql`told_version < clusters_version`),
  ],
);

/**
 * People who created clusters, by the names that control planes give them. One whom an operator renamed or deleted
 * stays, so that the name is known when a control plane says it again, and `replaced_by` says who is shown instead:
 * for a deleted one, the organization's person of two empty names. A trigger keeps clusters from naming the replaced.
 */
export const users = pgTable(
  'users',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: integer('organization_id')
      .notNull()
      .references(() => organizations.id),
    firstName: text('first_name').notNull(),
    lastName: text('last_name').notNull(),
    replacedBy: integer('replaced_by'),
  },
  (t) => [
    unique('users_natural_key').on(t.organizationId, t.firstName, t.lastName),
    unique('users_of_organization').on(t.organizationId, t.id),
    index('users_replaced').on(t.replacedBy).where(sql`replaced_by is not null`),
    foreignKey({ columns: [t.organizationId, t.replacedBy], foreignColumns: [t.organizationId, t.id] }),
    check('users_replace_others', sql`${t.replacedBy} <> ${t.id}`),
  ],
);

/** API tokens; only the SHA-256 is kept. `version` rises with every change, so that a revocation outranks a copy. */
export const tokens = pgTable(
  'tokens',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    organizationId: integer('organization_id')
      .notNull()
      .references(() => organizations.id),
    /** Says what uses it; null for a token without a name. */
    name: text('name'),
    hash: bytes('hash').notNull().unique(),
    scopes: text('scopes').array().notNull(),
    createdAt: instant('created_at').notNull().defaultNow(),
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
    lastUsedAt: instant('last_used_at'),
    version: bigint('version', { mode: 'number' }).notNull().default(1),
    publishedVersion: bigint('published_version', { mode: 'number' }).notNull().default(0),
  },
  (t) => [
    index('tokens_by_organization').on(t.organizationId),
    index('tokens_dirty').on(t.id).where(sql`published_version < version`),
  ],
);
