import { hashToken, newToken } from '../domain/token.ts';
import type { Database } from './connection/client.ts';
import { and, type Column, desc, eq, gt, inArray, isNull, or, type SQL, sql } from './connection/drizzle.ts';
import type { Page } from './connection/statements.ts';
import { countIf, increment, inTransaction, only, rfc3339 } from './connection/statements.ts';
import { organizations, tokens } from './schema.ts';

type Stored = Omit<
  typeof tokens.$inferSelect,
  'organizationId' | 'hash' | 'scopes' | 'version' | 'publishedVersion'
>;

/** Times are RFC 3339, to the second. The last use is to the minute, but not before the token was created. */
export interface TokenSummary extends Readonly<Stored> {
  readonly organization: string;
  readonly scopes: readonly string[];
  readonly state: 'good' | 'expired' | 'revoked';
}

export async function listTokens(db: Database, organizationId: number | undefined): Promise<TokenSummary[]> {
  const isWanted = organizationId === undefined ? undefined : eq(tokens.organizationId, organizationId);
  return summaries(db, isWanted).orderBy(tokens.id);
}

export interface TokenPage extends Page<TokenSummary> {
  /** Of them, those that are neither revoked nor expired. */
  readonly good: number;
}

/** Returns one page of an organization's tokens: good ones first, then the newest first. */
export async function tokenPage(
  db: Database,
  organizationId: number,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<TokenPage> {
  const isWanted = eq(tokens.organizationId, organizationId);
  const [rows, [counted]] = await Promise.all([
    summaries(db, isWanted).orderBy(IS_BAD, desc(tokens.id)).limit(limit).offset(offset),
    db
      .select({ total: countIf(sql`true`), good: countIf(sql`not ${IS_BAD}`) })
      .from(tokens)
      .innerJoin(organizations, eq(organizations.id, tokens.organizationId))
      .where(isWanted),
  ]);
  return { rows, total: counted?.total ?? 0, good: counted?.good ?? 0 };
}

const IS_REVOKED = sql`(${tokens.revokedAt} is not null or ${organizations.deletedAt} is not null)`;
const IS_BAD = sql`(${IS_REVOKED} or coalesce(${tokens.expiresAt} <= now(), false))`;

function summaries(db: Database, condition: SQL | undefined) {
  const { id, name, scopes, createdAt, expiresAt, revokedAt, lastUsedAt } = tokens;
  return db
    .select({
      ...{ id, organization: organizations.slug, name, scopes },
      state: sql<TokenSummary['state']>`case when ${IS_REVOKED} then 'revoked'
        when ${expiresAt} <= now() then 'expired' else 'good' end`,
      createdAt: rfc3339(createdAt),
      expiresAt: rfc3339(expiresAt),
      revokedAt: rfc3339(revokedAt),
      lastUsedAt: rfc3339(
        sql`case when ${lastUsedAt} is not null then greatest(${lastUsedAt}, ${createdAt}) end`,
      ),
    })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.organizationId))
    .where(condition)
    .$dynamic();
}

export async function organizationsOfTokens(
  db: Database,
  ids: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  const rows = await db
    .select({ id: tokens.id, slug: organizations.slug })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.organizationId))
    .where(inArray(tokens.id, [...ids]));
  return new Map(rows.map(({ id, slug }) => [id, slug]));
}

/** Returns true if the token is an unexpired token of the organization, e.g. the one in the folder of `up`. */
export async function tokenWorks(db: Database, token: string, organizationId: number): Promise<boolean> {
  const found = await db
    .select({ id: tokens.id })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.organizationId))
    .where(
      and(
        eq(tokens.hash, tokenDigest(token)),
        eq(tokens.organizationId, organizationId),
        isNull(organizations.deletedAt),
        isNull(tokens.revokedAt),
        or(isNull(tokens.expiresAt), gt(tokens.expiresAt, sql`now()`)),
      ),
    );
  return found.length > 0;
}

/** Returns the stored form of a token: its SHA-256. */
export const tokenDigest = (token: string): Buffer => Buffer.from(hashToken(token), 'hex');

/** The state of a row of `tokens` or `operator_tokens`. The absent row of a left join is good. */
export const tokenState = ({ revokedAt, expiresAt }: Record<'revokedAt' | 'expiresAt', Column>) =>
  sql<TokenSummary['state']>`case when ${revokedAt} is not null then 'revoked'
    when ${expiresAt} <= now() then 'expired' else 'good' end`;

/** The columns of a token that another one replaces: it is revoked, or expires after `graceMs`. */
export const replacedToken = (expiresAt: Column, graceMs: number) =>
  graceMs > 0
    ? { expiresAt: sql`least(${expiresAt}, now() + ${graceMs} * interval '1 ms')` }
    : { revokedAt: sql`now()` };

export async function createToken(
  db: Database,
  options: {
    organizationId: number;
    name?: string | null | undefined;
    scopes: readonly string[];
    expiresAt?: Date | string | null | undefined;
  },
) {
  const token = newToken();
  const { organizationId, name = null, scopes, expiresAt } = options;
  const inserted = await db
    .insert(tokens)
    .values({
      organizationId,
      name,
      hash: tokenDigest(token),
      scopes: [...scopes],
      expiresAt: expiresAt instanceof Date ? expiresAt.toISOString() : expiresAt,
    })
    .returning({ id: tokens.id });
  return { ...only(inserted), token };
}

/** Revokes a token. Its row stays as a tombstone. Returns undefined if it does not exist. */
export async function revokeToken(db: Database, id: number): Promise<'revoked' | 'was revoked' | undefined> {
  const revoked = await db
    .update(tokens)
    .set({ revokedAt: sql`now()`, version: increment(tokens.version) })
    .where(and(eq(tokens.id, id), isNull(tokens.revokedAt)));
  if (revoked.count > 0) return 'revoked';
  return (await db.$count(tokens, eq(tokens.id, id))) > 0 ? 'was revoked' : undefined;
}

/**
 * Creates a token with the organization, name, scopes and expiry of another one. The old token is revoked at once, or
 * expires after `graceMs`. Returns why not if the old token is not good; `oldExpiresAt` is null if the old one is revoked.
 */
export async function rotateToken(db: Database, id: number, graceMs: number) {
  return inTransaction(db, async (tx) => {
    const [old] = await tx
      .select({
        organizationId: tokens.organizationId,
        organization: organizations.slug,
        name: tokens.name,
        scopes: tokens.scopes,
        expiresAt: tokens.expiresAt,
        state: tokenState(tokens),
        deletedAt: organizations.deletedAt,
      })
      .from(tokens)
      .innerJoin(organizations, eq(organizations.id, tokens.organizationId))
      .where(eq(tokens.id, id))
      .for('update', { of: tokens });
    if (!old) return 'unknown';
    if (old.deletedAt !== null) return 'revoked';
    if (old.state !== 'good') return old.state;
    const { organization, name, scopes, expiresAt } = old;
    const created = await createToken(tx, old);
    const [left] = await tx
      .update(tokens)
      .set({ ...replacedToken(tokens.expiresAt, graceMs), version: increment(tokens.version) })
      .where(eq(tokens.id, id))
      .returning({ expiresAt: tokens.expiresAt });
    return {
      ...created,
      organization,
      name,
      scopes,
      expiresAt: isoTime(expiresAt),
      oldExpiresAt: graceMs > 0 ? isoTime(left?.expiresAt) : null,
    };
  });
}

const isoTime = (text: string | null | undefined) => (text == null ? null : new Date(text).toISOString());
