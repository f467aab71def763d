/**
 * What people change about organizations, their users and their tokens. Each change and its row of the audit log are one
 * transaction; what found nothing to change leaves no row.
 */
import type { Decider } from '../../domain/access/operator.ts';
import type { Scope } from '../../domain/access/token.ts';
import { type AuditEntry, audit } from '../audit.ts';
import type { Database } from '../connection/connect.ts';
import type { Organization } from '../organizations.ts';
import {
  createOrganization,
  type DeletedOrganization,
  deleteOrganization,
  renameOrganization,
} from './organizations.ts';
import { type CreatedToken, createToken, type RotatedToken, revokeToken, rotateToken } from './tokens.ts';
import { deleteUser, type ReplacedUser, renameUser, type UserName } from './users.ts';

export type { ReplacedUser, UserName } from './users.ts';

export interface Administration {
  /** Undefined when the slug is taken, also by one that was deleted. */
  createOrganization(slug: string, name: string): Promise<Organization | undefined>;
  /** Undefined when there is none, or it was deleted. */
  renameOrganization(slug: string, name: string): Promise<Organization | undefined>;
  /** Deletes by tombstone. Undefined when there is none, or it was deleted already. */
  deleteOrganization(slug: string): Promise<DeletedOrganization | undefined>;
  createToken(
    organization: Organization,
    options: {
      readonly name?: string | undefined;
      readonly scopes: readonly Scope[];
      readonly expiresAt?: Date | undefined;
    },
  ): Promise<CreatedToken>;
  /** Undefined when there is no such token. */
  revokeToken(id: number): Promise<'revoked' | 'was revoked' | undefined>;
  /** @param graceMs milliseconds for which the old token stays good @returns why not, when the old one is not good */
  rotateToken(id: number, graceMs: number): Promise<RotatedToken | 'unknown' | 'revoked' | 'expired'>;
  /** Undefined when there is no such person. */
  renameUser(organization: Organization, id: number, name: UserName): Promise<ReplacedUser | undefined>;
  /** Undefined when there is no such person. */
  deleteUser(organization: Organization, id: number): Promise<ReplacedUser | undefined>;
}

/** The changes as one person makes them. */
export function administration(db: Database, decider: Decider): Administration {
  const recorded = <T>(change: (tx: Database) => Promise<T>, entryOf: (done: T) => AuditEntry | undefined) =>
    db.transaction(async (tx) => {
      const done = await change(tx);
      const entry = entryOf(done);
      if (entry) await audit(tx, decider, entry);
      return done;
    });
  return {
    createOrganization: (slug, name) =>
      recorded(
        (tx) => createOrganization(tx, slug, name),
        (made) => made && { action: 'organization.create', subject: organizationOf(slug), details: { name } },
      ),
    renameOrganization: (slug, name) =>
      recorded(
        (tx) => renameOrganization(tx, slug, name),
        (made) => made && { action: 'organization.rename', subject: organizationOf(slug), details: { name } },
      ),
    deleteOrganization: (slug) =>
      recorded(
        (tx) => deleteOrganization(tx, slug),
        (gone) =>
          gone && {
            action: 'organization.delete',
            subject: organizationOf(slug),
            details: { name: gone.name, clusters: gone.clusters, tokens: gone.tokens },
          },
      ),
    createToken: ({ id: organizationId, slug }, { name, scopes, expiresAt }) =>
      recorded(
        (tx) => createToken(tx, { organizationId, name, scopes, expiresAt }),
        ({ id }) => ({
          action: 'token.create',
          subject: tokenOf(id),
          details: {
            organization: slug,
            name: name ?? null,
            scopes,
            expiresAt: expiresAt?.toISOString() ?? null,
          },
        }),
      ),
    revokeToken: (id) =>
      recorded(
        (tx) => revokeToken(tx, id),
        (outcome) => (outcome === 'revoked' ? { action: 'token.revoke', subject: tokenOf(id) } : undefined),
      ),
    rotateToken: (id, graceMs) =>
      recorded(
        (tx) => rotateToken(tx, id, graceMs),
        (rotated) => {
          if (typeof rotated === 'string') return undefined;
          const { id: successor, organization, name, oldExpiresAt } = rotated;
          return {
            action: 'token.rotate',
            subject: tokenOf(id),
            details: { successor, organization, name, oldExpiresAt },
          };
        },
      ),
    renameUser: (organization, id, name) =>
      recorded(
        (tx) => renameUser(tx, organization.id, id, name),
        (renamed) => renamed && userEntry('user.rename', organization, id, renamed),
      ),
    deleteUser: (organization, id) =>
      recorded(
        (tx) => deleteUser(tx, organization.id, id),
        (gone) => gone && userEntry('user.delete', organization, id, gone),
      ),
  };
}

const organizationOf = (slug: string) => ({ kind: 'organization', id: slug });
const tokenOf = (id: number) => ({ kind: 'token', id });

/** The names of a person who was deleted are not kept here either: the log cannot forget. */
function userEntry(
  action: string,
  organization: Organization,
  id: number,
  { id: shownAs, clusters }: { readonly id: number; readonly clusters: number },
): AuditEntry {
  return {
    action,
    subject: { kind: 'user', id },
    details: { organization: organization.slug, shownAs, clusters },
  };
}
