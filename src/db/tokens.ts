import type { Logger } from 'pino';
import { hashToken } from '../domain/access/token.ts';
import { withTimeout } from '../domain/servers/timeout.ts';
import { instant } from './changes.ts';
import type { Sql } from './connection/client.ts';
import type { Database } from './connection/database.ts';
import { and, eq, gt, isNull, or, sql } from './connection/drizzle.ts';
import { codeOf } from './connection/errors.ts';
import { organizations, tokens } from './schema.ts';

/** Instants as RFC 3339, to the second; the last use to the minute, but never before the token was made. */
export interface TokenSummary {
  readonly id: number;
  /** The organization's slug. */
  readonly organization: string;
  /** Null for a token without a name. */
  readonly name: string | null;
  readonly scopes: readonly string[];
  readonly state: 'good' | 'expired' | 'revoked';
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly lastUsedAt: string | null;
}

/** Every token, or those of one organization, by id. */
export async function listTokens(sql: Sql, organizationId: number | undefined): Promise<TokenSummary[]> {
  return sql<TokenSummary[]>`
    ${summaries(sql)} where t.organization_id = ${organizationId ?? null} or ${organizationId === undefined}
    order by t.id`;
}

export interface TokenPage {
  readonly rows: readonly TokenSummary[];
  /** How many there are on all pages. */
  readonly total: number;
  /** Those of them that are good. */
  readonly good: number;
}

/** Tokens of one organization: those that are good first, of either kind the youngest first. */
export async function tokenPage(
  sql: Sql,
  organizationId: number,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<TokenPage> {
  const [rows, [counted]] = await Promise.all([
    sql<TokenSummary[]>`
      ${summaries(sql)} where t.organization_id = ${organizationId}
      order by t.revoked_at is not null or o.deleted_at is not null or coalesce(t.expires_at <= now(), false), t.id desc
      limit ${limit} offset ${offset}`,
    sql<{ total: number; good: number }[]>`
      select count(*)::int as total, count(*) filter (
        where t.revoked_at is null and o.deleted_at is null and (t.expires_at is null or t.expires_at > now()))::int as good
      from tokens t join organizations o on o.id = t.organization_id where t.organization_id = ${organizationId}`,
  ]);
  return { rows, total: counted?.total ?? 0, good: counted?.good ?? 0 };
}

/** Of the tokens `t` and their organizations `o`, without a condition. */
function summaries(sql: Sql) {
  return sql`
    select t.id, o.slug as organization, t.name, t.scopes,
      case when t.revoked_at is not null or o.deleted_at is not null then 'revoked'
        when t.expires_at <= now() then 'expired' else 'good' end as state,
      ${instant(sql, sql`t.created_at`)} as "createdAt", ${instant(sql, sql`t.expires_at`)} as "expiresAt",
      ${instant(sql, sql`t.revoked_at`)} as "revokedAt", ${instant(sql, sql`u.last_used_at`)} as "lastUsedAt"
    from tokens t join organizations o on o.id = t.organization_id
    -- Kept to the minute, which may lie before the token was made.
    left join lateral (
      select greatest(t.last_used_at, t.created_at) as last_used_at where t.last_used_at is not null) u on true`;
}

/** The slugs of the organizations of tokens, by the tokens' ids. */
export async function organizationsOfTokens(
  sql: Sql,
  ids: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  if (ids.length === 0) return new Map();
  const rows = await sql<{ id: number; slug: string }[]>`
    select t.id, o.slug from tokens t join organizations o on o.id = t.organization_id where t.id = any(${[...ids]})`;
  return new Map(rows.map(({ id, slug }) => [id, slug]));
}

export interface TokenUseOptions {
  /** Acts as the reader. */
  readonly sql: Sql;
  readonly logger: Logger;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Tokens of which it keeps a use that is not written yet; those beyond go unnoted. 100,000 unless given. */
  readonly atMost?: number;
}

const MINUTE_MS = 60_000;
/** Milliseconds for which the end of the process waits for the last uses to be written. */
const LAST_WRITE_MS = 3000;

/**
 * When tokens were last used, without a write for each request: uses are noted in memory and written in one statement
 * a minute, and once more on disposal. While Postgres is away they are kept and tried again.
 */
export class TokenUse implements AsyncDisposable {
  readonly #sql: Sql;
  readonly #logger: Logger;
  readonly #now: () => number;
  readonly #atMost: number;
  readonly #timer: NodeJS.Timeout;
  /** Token id → the minute of its last use, in minutes since the epoch. */
  #unwritten = new Map<number, number>();
  #writing: Promise<void> | undefined;

  constructor(options: TokenUseOptions) {
    this.#sql = options.sql;
    this.#logger = options.logger;
    this.#now = options.now ?? Date.now;
    this.#atMost = options.atMost ?? 100_000;
    this.#timer = setInterval(() => void this.write(), MINUTE_MS);
    this.#timer.unref();
  }

  /** Notes a use. Cheap enough for every request: no I/O, no promise. */
  used(tokenId: number): void {
    this.#note(tokenId, Math.floor(this.#now() / MINUTE_MS));
  }

  #note(tokenId: number, minute: number): void {
    const known = this.#unwritten.get(tokenId);
    if (known === undefined ? this.#unwritten.size < this.#atMost : known < minute) {
      this.#unwritten.set(tokenId, minute);
    }
  }

  /** Writes what was noted. Never fails: what cannot be written is kept for the next time. */
  write(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    const uses = this.#unwritten;
    if (uses.size === 0) return;
    this.#unwritten = new Map();
    const at = Array.from(uses.values(), (minute) => new Date(minute * MINUTE_MS).toISOString());
    try {
      await this.#sql`select note_token_use(${[...uses.keys()]}::int[], ${at}::timestamptz[])`;
    } catch (error) {
      for (const [tokenId, minute] of uses) this.#note(tokenId, minute);
      this.#logger.debug(
        { code: codeOf(error), tokens: uses.size },
        'the last use of tokens is not written yet',
      );
    }
  }

  /** Writes what is left, if that can be had within a few seconds. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await withTimeout(LAST_WRITE_MS, this.#last());
  }

  async #last(): Promise<void> {
    await this.#writing;
    await this.write();
  }
}

/** Whether this very token is good now, e.g. the one that an earlier start kept in a file. */
export async function tokenWorks(db: Database, token: string, organizationId: number): Promise<boolean> {
  const rows = await db
    .select({ id: tokens.id })
    .from(tokens)
    .innerJoin(organizations, eq(organizations.id, tokens.organizationId))
    .where(
      and(
        eq(tokens.hash, Buffer.from(hashToken(token), 'hex')),
        eq(tokens.organizationId, organizationId),
        isNull(organizations.deletedAt),
        isNull(tokens.revokedAt),
        or(isNull(tokens.expiresAt), gt(tokens.expiresAt, sql`now()`)),
      ),
    );
  return rows.length > 0;
}
