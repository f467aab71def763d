/** Operators of the console. Each change and its row of the audit log are one transaction. */

import { audit } from '../../../db/audit.ts';
import type { Database } from '../../../db/connection/connect.ts';
import { eq, type PgUpdateSetSource, sql } from '../../../db/connection/drizzle.ts';
import { rfc3339 } from '../../../db/connection/statements.ts';
import { auditLog, operatorSessions, operators, operatorTokens } from '../../../db/schema.ts';
import { tokenState } from '../../../db/tokens.ts';
import type { Decider, OperatorSummary, Role } from '../../../domain/operator.ts';
import { endSessionsOf } from './sessions.ts';
import { type IssuedToken, insertToken, recordToken, type TokenTerms } from './tokens.ts';

export type OperatorChange = 'changed' | 'unchanged' | 'unknown';

export async function createOperator(
  db: Database,
  decider: Decider,
  { name, role, token }: { readonly name: string; readonly role: Role; readonly token: TokenTerms },
): Promise<IssuedToken | undefined> {
  return db.transaction(async (tx) => {
    const [made] = await tx.insert(operators).values({ name, role }).onConflictDoNothing().returning();
    if (!made) return undefined;
    const issued = await insertToken(tx, made, token);
    await recordToken(tx, decider, 'operator.create', issued, { role, ...token });
    return issued;
  });
}

/** @returns undefined without such an operator */
export async function issueToken(
  db: Database,
  decider: Decider,
  operator: string,
  terms: TokenTerms,
): Promise<IssuedToken | undefined> {
  return db.transaction(async (tx) => {
    const [found] = await tx.select().from(operators).where(eq(operators.name, operator)).for('update');
    if (!found) return undefined;
    const wasOidc = found.oidcSubject !== null || found.awaitsOidc;
    if (wasOidc) {
      await tx.update(operators).set(UNBOUND).where(eq(operators.id, found.id));
      await endSessionsOf(tx, found.id);
    }
    const issued = await insertToken(tx, found, terms);
    await recordToken(tx, decider, 'operator.create-token', issued, {
      ...terms,
      ...(wasOidc && { signedInBy: 'oidc' }),
    });
    return issued;
  });
}

export const setOperatorRole = (db: Database, decider: Decider, name: string, role: Role) =>
  change(db, decider, 'operator.set-role', name, { role }, (operator) =>
    operator.role === role ? undefined : { role },
  );

/** Hands an account over to the person whose verified address is its name, and ends its tokens and sessions. */
export const setOperatorByOidc = (db: Database, decider: Decider, name: string) =>
  change(db, decider, 'operator.use-oidc', name, {}, async ({ id }, tx) => {
    await endSessionsOf(tx, id);
    await tx
      .update(operatorTokens)
      .set({ revokedAt: sql`coalesce(${operatorTokens.revokedAt}, now())` })
      .where(eq(operatorTokens.operatorId, id));
    return { ...UNBOUND, awaitsOidc: true };
  });

/** Disables an operator, which ends the sessions, or enables it. The tokens of an enabled operator are good again. */
export const setOperatorDisabled = (db: Database, decider: Decider, name: string, disabled: boolean) =>
  change(
    db,
    decider,
    `operator.${disabled ? 'disable' : 'enable'}`,
    name,
    {},
    async ({ id, disabledAt }, tx) => {
      if ((disabledAt !== null) === disabled) return undefined;
      await endSessionsOf(tx, id);
      return { disabledAt: disabled ? sql`now()` : null };
    },
  );

export const endOperatorSessions = (db: Database, decider: Decider, name: string) =>
  change(db, decider, 'operator.end-sessions', name, {}, async ({ id }, tx) => {
    await endSessionsOf(tx, id);
    return {};
  });

const UNBOUND = { oidcIssuer: null, oidcSubject: null, verifiedAddress: null, awaitsOidc: false };

type Operator = typeof operators.$inferSelect;
type Changed = PgUpdateSetSource<typeof operators>;

/** Changes an operator and adds a row to the audit log. @param values returns the changed columns; undefined for no change */
async function change(
  db: Database,
  decider: Decider,
  action: string,
  name: string,
  details: Readonly<Record<string, unknown>>,
  values: (operator: Operator, tx: Database) => Promise<Changed | undefined> | Changed | undefined,
): Promise<OperatorChange> {
  return db.transaction(async (tx) => {
    const [operator] = await tx.select().from(operators).where(eq(operators.name, name)).for('update');
    if (!operator) return 'unknown';
    const changed = await values(operator, tx);
    if (!changed) return 'unchanged';
    if (Object.keys(changed).length > 0)
      await tx.update(operators).set(changed).where(eq(operators.id, operator.id));
    await audit(tx, decider, { action, subject: { kind: 'operator', id: name }, details });
    return 'changed';
  });
}

export async function listOperators(db: Database): Promise<OperatorSummary[]> {
  const { id, name, role, oidcSubject, awaitsOidc, verifiedAddress, createdAt, disabledAt } = operators;
  // In the outermost expression, Drizzle omits the table of a column.
  const goodTokens = sql`(select count(*)::int from ${operatorTokens}
    where ${operatorTokens.operatorId} = ${id} and ${tokenState(operatorTokens)} = 'good')`;
  return db
    .select({
      name,
      role,
      signsInBy: sql<
        'token' | 'oidc'
      >`case when ${oidcSubject} is not null or ${awaitsOidc} then 'oidc' else 'token' end`,
      tokens: sql<number>`${goodTokens}`,
      verifiedAddress,
      createdAt: sql<string>`${rfc3339(createdAt)}`,
      disabledAt: rfc3339(disabledAt),
      lastSeenAt: rfc3339(sql`greatest(
        (select max(${auditLog.at}) from ${auditLog} where ${auditLog.by} = ${name} and ${auditLog.how} <> 'cli'),
        (select max(${operatorSessions.usedAt}) from ${operatorSessions} where ${operatorSessions.operatorId} = ${id}),
        (select max(${operatorTokens.lastUsedAt}) from ${operatorTokens} where ${operatorTokens.operatorId} = ${id}))`),
    })
    .from(operators)
    .orderBy(sql`${name} collate "C"`);
}
