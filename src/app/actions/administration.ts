/** Changes that operators make to organizations, users and tokens. The same transaction writes each change and its audit row. */
import type { z } from 'zod';
import { type AuditEntry, audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/connect.ts';
import {
  createOrganization,
  deleteOrganization,
  type Organization,
  renameOrganization,
} from '../../db/organizations.ts';
import { createToken, revokeToken, rotateToken } from '../../db/tokens.ts';
import { deleteUser, type ReplacedUser, renameUser, type UserName } from '../../db/users.ts';
import type { Decider } from '../../domain/operator.ts';
import type { newToken } from './inputs.ts';

export type Administration = ReturnType<typeof administration>;

/** Returns the changes, as made by one operator. A change that finds nothing to do leaves no audit row. */
export function administration(db: Database, decider: Decider) {
  const recorded = <T>(
    action: string,
    change: (tx: Database) => Promise<T>,
    entryOf: (done: Extract<T, object>) => Omit<AuditEntry, 'action'>,
  ) =>
    db.transaction(async (tx) => {
      const done = await change(tx);
      if (isDone(done)) await audit(tx, decider, { action, ...entryOf(done) });
      return done;
    });
  return {
    createOrganization: (slug: string, name: string) =>
      recorded(
        'organization.create',
        (tx) => createOrganization(tx, slug, name),
        () => ({ subject: organizationOf(slug), details: { name } }),
      ),
    renameOrganization: (slug: string, name: string) =>
      recorded(
        'organization.rename',
        (tx) => renameOrganization(tx, slug, name),
        () => ({ subject: organizationOf(slug), details: { name } }),
      ),
    deleteOrganization: (slug: string) =>
      recorded(
        'organization.delete',
        (tx) => deleteOrganization(tx, slug),
        ({ name, clusters, tokens }) => ({
          subject: organizationOf(slug),
          details: { name, clusters, tokens },
        }),
      ),
    createToken: (
      { id: organizationId, slug }: Organization,
      { name, scopes, expires }: z.output<typeof newToken>,
    ) =>
      recorded(
        'token.create',
        (tx) => createToken(tx, { organizationId, name, scopes, expiresAt: expires }),
        ({ id }) => ({
          subject: tokenOf(id),
          details: {
            organization: slug,
            name: name ?? null,
            scopes,
            expiresAt: expires?.toISOString() ?? null,
          },
        }),
      ),
    revokeToken: (id: number) =>
      db.transaction(async (tx) => {
        const outcome = await revokeToken(tx, id);
        if (outcome === 'revoked') await audit(tx, decider, { action: 'token.revoke', subject: tokenOf(id) });
        return outcome;
      }),
    rotateToken: (id: number, graceMs: number) =>
      recorded(
        'token.rotate',
        (tx) => rotateToken(tx, id, graceMs),
        ({ id: successor, organization, name, oldExpiresAt }) => ({
          subject: tokenOf(id),
          details: { successor, organization, name, oldExpiresAt },
        }),
      ),
    renameUser: (organization: Organization, id: number, name: UserName) =>
      recorded('user.rename', (tx) => renameUser(tx, organization.id, id, name), userEntry(organization, id)),
    deleteUser: (organization: Organization, id: number) =>
      recorded('user.delete', (tx) => deleteUser(tx, organization.id, id), userEntry(organization, id)),
  };
}

/** A change that found nothing to do returns undefined or the cause. */
const isDone = <T>(done: T): done is Extract<T, object> => typeof done === 'object' && done !== null;

const organizationOf = (slug: string) => ({ kind: 'organization', id: slug });
const tokenOf = (id: number) => ({ kind: 'token', id });

/** Leaves out the user's names: the audit log keeps its rows, and a deleted user's names must go. */
const userEntry =
  ({ slug }: Organization, id: number) =>
  ({ id: shownAs, clusters }: ReplacedUser) => ({
    subject: { kind: 'user', id },
    details: { organization: slug, shownAs, clusters },
  });
