/** Accounts of people who sign in by OpenID Connect: made at their first sign-in, with the role that their groups give. */

import type { Decider, Role } from '../../domain/operator.ts';
import type { Database } from '../connect.ts';
import { and, eq, isNull, ne } from '../drizzle.ts';
import { operators } from '../schema.ts';
import { audit } from './audit.ts';
import { SESSIONS_END } from './operators.ts';

export interface OidcPerson {
  readonly issuer: string;
  /** What the issuer knows the person by, whatever their name is. */
  readonly subject: string;
  /** What the person is called here, if that can be an operator's name; it stays what it was at the first sign-in. */
  readonly name: string | undefined;
  /** Undefined for a person whose groups give none. */
  readonly role: Role | undefined;
}

export type OidcSignIn =
  | { readonly outcome: 'account'; readonly id: number; readonly name: string; readonly sessionEpoch: number }
  /** `account` where there is one already. */
  | { readonly outcome: 'no-role'; readonly account: string | undefined }
  | { readonly outcome: 'no-name' }
  /** The name is that of somebody who signs in by a password, or whom the issuer knows by another subject. */
  | { readonly outcome: 'taken'; readonly account: string }
  | { readonly outcome: 'disabled'; readonly account: string };

/**
 * Finds or makes the account of somebody whom the issuer has vouched for, gives it the role of now, and puts the sign-in
 * on record, in one transaction. Of a person who has no role any more all sessions end.
 * @param address from which the person comes
 */
export async function signInByOidc(
  db: Database,
  { issuer, subject, name, role }: OidcPerson,
  address: string,
): Promise<OidcSignIn> {
  const isPerson = and(eq(operators.oidcIssuer, issuer), eq(operators.oidcSubject, subject));
  const deciderOf = (by: string): Decider => ({ by, how: 'oidc', address, reason: undefined });
  return db.transaction(async (tx) => {
    const of = (by: string, action: string, details?: Record<string, unknown>) =>
      audit(tx, deciderOf(by), {
        action,
        subject: { kind: 'operator', id: by },
        ...(details && { details }),
      });
    let [known] = await tx.select().from(operators).where(isPerson).for('update');
    if (known === undefined && role !== undefined && name !== undefined) {
      const values = { name, role, oidcIssuer: issuer, oidcSubject: subject };
      const made = await tx.insert(operators).values(values).onConflictDoNothing().returning();
      if (made.length > 0) await of(name, 'operator.create', { role, issuer });
      else await claim(tx, name, issuer, subject);
      [known] = await tx.select().from(operators).where(isPerson).for('update');
      if (known === undefined) return { outcome: 'taken', account: name };
    }
    if (known?.disabledAt) return { outcome: 'disabled', account: known.name };
    if (role === undefined) {
      if (known) {
        await tx.update(operators).set(SESSIONS_END).where(eq(operators.id, known.id));
        await of(known.name, 'operator.end-sessions', { reason: 'no group gives a role any more' });
      }
      return { outcome: 'no-role', account: known?.name };
    }
    if (known === undefined) return { outcome: 'no-name' };
    const isOther = and(eq(operators.id, known.id), ne(operators.role, role));
    const changed = await tx.update(operators).set({ role }).where(isOther);
    if (changed.count > 0) await of(known.name, 'operator.set-role', { role });
    await of(known.name, 'session.begin');
    const { id, sessionEpoch } = known;
    return { outcome: 'account', id, name: known.name, sessionEpoch };
  });
}

/** An account that has no password and no subject yet waits for the person whom the issuer calls so. */
async function claim(tx: Database, name: string, oidcIssuer: string, oidcSubject: string): Promise<void> {
  const isFree = and(isNull(operators.passwordHash), isNull(operators.oidcSubject));
  await tx
    .update(operators)
    .set({ oidcIssuer, oidcSubject })
    .where(and(eq(operators.name, name), isFree));
}
