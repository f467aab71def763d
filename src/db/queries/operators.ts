/** Accounts of the operators' pages. Each change and its row of the audit log are one transaction. */

import type { Decider, Role } from '../../domain/operator.ts';
import type { Database } from '../connect.ts';
import { and, eq, isNotNull, isNull, ne, type SQL, sql } from '../drizzle.ts';
import { operators } from '../schema.ts';
import { increment } from '../statements.ts';
import { type AuditEntry, audit } from './audit.ts';

/** What came of a change; `unchanged` where it was so already, which leaves no row in the audit log. */
export type OperatorChange = 'changed' | 'unchanged' | 'unknown';

/** Makes an account. False when the name is taken, also by one that is disabled. */
export async function createOperator(
  db: Database,
  decider: Decider,
  { name, role, passwordHash }: { readonly name: string; readonly role: Role; readonly passwordHash: string },
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const made = await tx.insert(operators).values({ name, role, passwordHash }).onConflictDoNothing();
    if (made.count === 0) return false;
    await audit(tx, decider, entry('operator.create', name, { role }));
    return true;
  });
}

/** Gives an account another role. Its sessions stay, and have the new role from their next request on. */
export async function setOperatorRole(
  db: Database,
  decider: Decider,
  name: string,
  role: Role,
): Promise<OperatorChange> {
  return change(db, decider, entry('operator.set-role', name, { role }), ne(operators.role, role), { role });
}

/** Gives an account another password; all its sessions end. From now on it signs in by that alone. */
export async function setOperatorPassword(
  db: Database,
  decider: Decider,
  name: string,
  passwordHash: string,
): Promise<OperatorChange> {
  return change(db, decider, entry('operator.set-password', name), undefined, {
    passwordHash,
    oidcIssuer: null,
    oidcSubject: null,
    verifiedAddress: null,
    ...SESSIONS_END,
  });
}

/**
 * Has an account wait for a person of OpenID Connect: the next sign-in whose verified address is its name gets it. Removes its
 * password, and ends all its sessions.
 */
export async function setOperatorByOidc(
  db: Database,
  decider: Decider,
  name: string,
): Promise<OperatorChange> {
  return change(db, decider, entry('operator.use-oidc', name), undefined, {
    passwordHash: null,
    oidcIssuer: null,
    oidcSubject: null,
    verifiedAddress: null,
    ...SESSIONS_END,
  });
}

/**
 * Keeps the same password by another hash, unless it has another one meanwhile. Its sessions stay, and nobody has done
 * anything that would have to be on record.
 */
export async function renewPasswordHash(
  db: Database,
  name: string,
  before: string,
  passwordHash: string,
): Promise<void> {
  const isStill = and(eq(operators.name, name), eq(operators.passwordHash, before));
  await db.update(operators).set({ passwordHash }).where(isStill);
}

/** Nobody can sign in by a disabled account, and all its sessions end; enabled again, its password is the same. */
export async function setOperatorDisabled(
  db: Database,
  decider: Decider,
  name: string,
  disabled: boolean,
): Promise<OperatorChange> {
  const action = disabled ? 'operator.disable' : 'operator.enable';
  const isOther = disabled ? isNull(operators.disabledAt) : isNotNull(operators.disabledAt);
  const disabledAt = disabled ? sql`now()` : null;
  return change(db, decider, entry(action, name), isOther, { disabledAt, ...SESSIONS_END });
}

/** Ends all sessions of an account, e.g. because a computer was lost. */
export async function endOperatorSessions(
  db: Database,
  decider: Decider,
  name: string,
): Promise<OperatorChange> {
  return change(db, decider, entry('operator.end-sessions', name), undefined, SESSIONS_END);
}

export const SESSIONS_END = { sessionEpoch: increment(operators.sessionEpoch) };

const entry = (action: string, name: string, details?: Record<string, unknown>): AuditEntry => ({
  action,
  subject: { kind: 'operator', id: name },
  ...(details && { details }),
});

function change(
  db: Database,
  decider: Decider,
  audited: AuditEntry,
  isOther: SQL | undefined,
  values: Parameters<ReturnType<typeof db.update<typeof operators>>['set']>[0],
): Promise<OperatorChange> {
  const isNamed = eq(operators.name, String(audited.subject.id));
  return db.transaction(async (tx) => {
    const changed = await tx.update(operators).set(values).where(and(isNamed, isOther));
    if (changed.count === 0) return (await tx.$count(operators, isNamed)) > 0 ? 'unchanged' : 'unknown';
    await audit(tx, decider, audited);
    return 'changed';
  });
}
