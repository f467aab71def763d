/** Changes that operators make to organizations, users and tokens. The same transaction writes each change and its audit row. */
import type { Decider } from '../domain/operator.ts';
import type { Scope } from '../domain/scope.ts';
import { type AuditEntry, audit } from './audit.ts';
import type { Database } from './connection/connect.ts';
import {
  createOrganization,
  deleteOrganization,
  type Organization,
  renameOrganization,
} from './organizations.ts';
import { createToken, revokeToken, rotateToken } from './tokens.ts';
import { deleteUser, renameUser, type UserName } from './users.ts';

export type Administration = ReturnType<typeof administration>;

/** Returns the changes, as made by one operator. A change that finds nothing to do leaves no audit row. */
export function administration(db: Database, decider: Decider) {
  const recorded = <T>(change: (tx: Database) => Promise<T>, entryOf: (done: T) => AuditEntry | undefined) =>
    db.transaction(async (tx) => {
      const done = await change(tx);
      const entry = entryOf(done);
      if (entry) await audit(tx, decider, entry);
      return done;
    });
  return {
    createOrganization: (slug: string, name: string) =>
      recorded(
        (tx) => createOrganization(tx, slug, name),
        (made) => made && { action: 'organization.create', subject: organizationOf(slug), details: { name } },
      ),
    renameOrganization: (slug: string, name: string) =>
      recorded(
        (tx) => renameOrganization(tx, slug, name),
        (made) => made && { action: 'organization.rename', subject: organizationOf(slug), details: { name } },
      ),
    deleteOrganization: (slug: string) =>
      recorded(
        (tx) => deleteOrganization(tx, slug),
        (deleted) => {
          if (!deleted) return undefined;
          const { name, clusters, tokens } = deleted;
          return {
            action: 'organization.delete',
            subject: organizationOf(slug),
            details: { name, clusters, tokens },
          };
        },
      ),
    createToken: (
      { id: organizationId, slug }: Organization,
      {
        name,
        scopes,
        expiresAt,
      }: { name?: string | undefined; scopes: readonly Scope[]; expiresAt?: Date | undefined },
    ) =>
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
    revokeToken: (id: number) =>
      recorded(
        (tx) => revokeToken(tx, id),
        (outcome) => (outcome === 'revoked' ? { action: 'token.revoke', subject: tokenOf(id) } : undefined),
      ),
    rotateToken: (id: number, graceMs: number) =>
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
    renameUser: (organization: Organization, id: number, name: UserName) =>
      recorded(
        (tx) => renameUser(tx, organization.id, id, name),
        (renamed) => renamed && userEntry('user.rename', organization, id, renamed),
      ),
    deleteUser: (organization: Organization, id: number) =>
      recorded(
        (tx) => deleteUser(tx, organization.id, id),
        (deleted) => deleted && userEntry('user.delete', organization, id, deleted),
      ),
  };
}

const organizationOf = (slug: string) => ({ kind: 'organization', id: slug });
const tokenOf = (id: number) => ({ kind: 'token', id });

/** Returns an entry without the user's names: the audit log keeps its rows, and a deleted user's names must go. */
function userEntry(
  action: string,
  { slug }: Organization,
  id: number,
  { id: shownAs, clusters }: { readonly id: number; readonly clusters: number },
): AuditEntry {
  return { action, subject: { kind: 'user', id }, details: { organization: slug, shownAs, clusters } };
}
