/** Tokens of operators. Only their SHA-256 is stored. A change and its row of the audit log are one transaction. */

import { audit } from '../../../db/audit.ts';
import type { Database } from '../../../db/connection/connect.ts';
import { eq, inArray, sql } from '../../../db/connection/drizzle.ts';
import { rfc3339 } from '../../../db/connection/statements.ts';
import { operators, operatorTokens } from '../../../db/schema.ts';
import { replacedToken, tokenDigest, tokenState } from '../../../db/tokens.ts';
import type { Decider } from '../../../domain/operator.ts';
import { newToken } from '../../../domain/token.ts';

export interface TokenTerms {
  readonly name: string | null;
  readonly expiresAt: string | null;
}

export interface IssuedToken extends TokenTerms {
  readonly id: number;
  readonly operator: string;
  /** The token itself. It is shown once and not stored. */
  readonly token: string;
}

export async function insertToken(
  tx: Database,
  { id: operatorId, name: operator }: { readonly id: number; readonly name: string },
  terms: TokenTerms,
): Promise<IssuedToken> {
  const token = newToken('operator');
  const [row] = await tx
    .insert(operatorTokens)
    .values({ operatorId, ...terms, hash: tokenDigest(token) })
    .returning({ id: operatorTokens.id });
  if (!row) throw new Error('unreachable: an insert returns its row');
  return { ...terms, id: row.id, operator, token };
}

export async function revokeOperatorToken(
  db: Database,
  decider: Decider,
  id: number,
): Promise<'revoked' | 'was revoked' | undefined> {
  return db.transaction(async (tx) => {
    const old = await lockToken(tx, id);
    if (old === undefined || old.state === 'revoked') return old && 'was revoked';
    await tx.update(operatorTokens).set({ revokedAt: sql`now()` }).where(eq(operatorTokens.id, id));
    await recordToken(tx, decider, 'operator.revoke-token', old);
    return 'revoked';
  });
}

/** @returns the state of a token that is not good; else the new token. `oldExpiresAt` is null if the old one is revoked */
export async function rotateOperatorToken(db: Database, decider: Decider, id: number, graceMs: number) {
  return db.transaction(async (tx) => {
    const old = await lockToken(tx, id);
    if (old === undefined) return 'unknown';
    if (old.state !== 'good') return old.state;
    const { operatorId, operator, name, expiresAt } = old;
    const issued = await insertToken(tx, { id: operatorId, name: operator }, { name, expiresAt });
    const [left] = await tx
      .update(operatorTokens)
      .set(replacedToken(operatorTokens.expiresAt, graceMs))
      .where(eq(operatorTokens.id, id))
      .returning({ expiresAt: rfc3339(operatorTokens.expiresAt) });
    const oldExpiresAt = graceMs > 0 ? (left?.expiresAt ?? null) : null;
    await recordToken(tx, decider, 'operator.rotate-token', old, { successor: issued.id, oldExpiresAt });
    return { ...issued, oldExpiresAt };
  });
}

async function lockToken(tx: Database, id: number) {
  const { operatorId, name, expiresAt } = operatorTokens;
  const state = tokenState(operatorTokens);
  const [found] = await tx
    .select({
      id: operatorTokens.id,
      operatorId,
      operator: operators.name,
      name,
      state,
      expiresAt: rfc3339(expiresAt),
    })
    .from(operatorTokens)
    .innerJoin(operators, eq(operators.id, operatorId))
    .where(eq(operatorTokens.id, id))
    .for('update', { of: operatorTokens });
  return found;
}

/** Writes the row of the audit log about a token. Its subject is the operator. */
export function recordToken(
  tx: Database,
  decider: Decider,
  action: string,
  { id: token, operator }: { readonly id: number; readonly operator: string },
  more: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  return audit(tx, decider, {
    action,
    subject: { kind: 'operator', id: operator },
    details: { token, ...more },
  });
}

export async function listOperatorTokens(db: Database, operator: string | undefined) {
  const { id, name, expiresAt, createdAt, lastUsedAt } = operatorTokens;
  return db
    .select({
      id,
      operator: operators.name,
      name,
      state: tokenState(operatorTokens),
      createdAt: sql<string>`${rfc3339(createdAt)}`,
      expiresAt: rfc3339(expiresAt),
      lastUsedAt: rfc3339(lastUsedAt),
    })
    .from(operatorTokens)
    .innerJoin(operators, eq(operators.id, operatorTokens.operatorId))
    .where(operator === undefined ? undefined : eq(operators.name, operator))
    .orderBy(id);
}

export type FoundToken = Awaited<ReturnType<typeof findTokens>>[number];

/** Returns the tokens with these SHA-256 (hexadecimal), and their operators. Only a `good` token opens the server. */
export async function findTokens(db: Database, keys: readonly string[]) {
  const { id, hash, lastUsedAt } = operatorTokens;
  return db
    .select({
      key: sql<string>`encode(${hash}, 'hex')`,
      id,
      operatorId: operators.id,
      name: operators.name,
      role: operators.role,
      state: sql<
        'good' | 'expired' | 'revoked' | 'disabled'
      >`case when ${operators.disabledAt} is null then ${tokenState(operatorTokens)} else 'disabled' end`,
      isUseStale: sql<boolean>`coalesce(${lastUsedAt} < now() - interval '1 minute', true)`,
    })
    .from(operatorTokens)
    .innerJoin(operators, eq(operators.id, operatorTokens.operatorId))
    .where(inArray(hash, keys.map(bytesOf)));
}

export async function storeTokenUse(db: Database, id: number): Promise<void> {
  await db.update(operatorTokens).set({ lastUsedAt: sql`now()` }).where(eq(operatorTokens.id, id));
}

export const bytesOf = (key: string): Buffer => Buffer.from(key, 'hex');
