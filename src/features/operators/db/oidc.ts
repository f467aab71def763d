/** Accounts of people who sign in by OpenID Connect. The first sign-in creates the account; groups give the role. */

import { audit } from '../../../db/audit.ts';
import type { Database } from '../../../db/connection/connect.ts';
import { and, eq, isNull } from '../../../db/connection/drizzle.ts';
import { operators } from '../../../db/schema.ts';
import type { Role } from '../../../domain/operator.ts';
import { nameOfPerson, type OidcIdentity } from '../claims.ts';
import { endSessionsOf } from './sessions.ts';

export interface OidcPerson extends OidcIdentity {
  readonly role: Role | undefined;
}

export type OidcSignIn =
  | { readonly outcome: 'account'; readonly id: number; readonly name: string }
  | { readonly outcome: 'no-role'; readonly account: string | undefined }
  /** The name belongs to an operator with tokens, or to another person. */
  | { readonly outcome: 'taken'; readonly account: string }
  | { readonly outcome: 'disabled'; readonly account: string };

/** Signs a person in, in one transaction. Ends all sessions of a person without a role. */
export async function signInByOidc(db: Database, person: OidcPerson, address: string): Promise<OidcSignIn> {
  const { issuer, subject, role } = person;
  const isPerson = and(eq(operators.oidcIssuer, issuer), eq(operators.oidcSubject, subject));
  return db.transaction(async (tx) => {
    const record: Recorder = (by, action, details) =>
      audit(
        tx,
        { by, how: 'oidc', address, reason: undefined },
        { action, subject: { kind: 'operator', id: by }, ...(details && { details }) },
      );
    const find = async () => (await tx.select().from(operators).where(isPerson).for('update'))[0];
    let known = await find();
    if (known === undefined) {
      if (role === undefined) return { outcome: 'no-role', account: undefined };
      await createOrClaim(tx, person, role, record);
      known = await find();
      if (known === undefined) return { outcome: 'taken', account: nameOfPerson(person) };
    }
    if (known.disabledAt) return { outcome: 'disabled', account: known.name };
    if (role === undefined) {
      await endSessionsOf(tx, known.id);
      await record(known.name, 'operator.end-sessions', { reason: 'no group gives a role any more' });
      return { outcome: 'no-role', account: known.name };
    }
    const { name } = known;
    await tx
      .update(operators)
      .set({ role, verifiedAddress: person.address ?? null })
      .where(eq(operators.id, known.id));
    if (known.role !== role) await record(name, 'operator.set-role', { role });
    await record(name, 'session.begin');
    return { outcome: 'account', id: known.id, name };
  });
}

type Recorder = (by: string, action: string, details?: Record<string, unknown>) => Promise<void>;

/** Creates an account. A person gets a handed-over account if the issuer has verified its name as the address. */
async function createOrClaim(tx: Database, person: OidcPerson, role: Role, record: Recorder): Promise<void> {
  const name = nameOfPerson(person);
  const bound = {
    oidcIssuer: person.issuer,
    oidcSubject: person.subject,
    verifiedAddress: person.address ?? null,
  };
  const made = await tx
    .insert(operators)
    .values({ name, role, ...bound })
    .onConflictDoNothing()
    .returning();
  if (made.length > 0) return record(name, 'operator.create', { role, issuer: person.issuer });
  const isFree = and(eq(operators.awaitsOidc, true), isNull(operators.disabledAt));
  await tx
    .update(operators)
    .set({ ...bound, awaitsOidc: false })
    .where(and(eq(operators.name, name), isFree));
}
