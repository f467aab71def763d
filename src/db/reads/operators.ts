/** Accounts of the operators' pages. See queries/operators.ts. */
import type { Role } from '../../domain/operator.ts';
import type { Sql } from '../client.ts';

/** Instants as RFC 3339, to the second. */
export interface OperatorSummary {
  readonly name: string;
  readonly role: Role;
  readonly signsInBy: 'password' | 'oidc';
  /** Verified by the issuer at the last sign-in by OpenID Connect; null without one. */
  readonly verifiedAddress: string | null;
  readonly createdAt: string;
  /** Null for one that can sign in. */
  readonly disabledAt: string | null;
  /** The last sign-in, request or change in the console. */
  readonly lastSeenAt: string | null;
}

/** Every account, by name. */
export async function listOperators(sql: Sql): Promise<OperatorSummary[]> {
  const instant = (column: string) =>
    sql`to_char(${sql(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
  return sql<OperatorSummary[]>`
    select o.name, o.role, case when o.password_hash is null then 'oidc' else 'password' end as "signsInBy",
      o.verified_address as "verifiedAddress",
      ${instant('o.created_at')} as "createdAt", ${instant('o.disabled_at')} as "disabledAt",
      ${instant('seen.last_at')} as "lastSeenAt"
    from operators o
    cross join lateral (
      select greatest(
        (select max(at) from audit_log where by = o.name and how in ('console', 'oidc')),
        (select max(seen_at) from operator_sessions where operator_id = o.id)
      ) as last_at
    ) seen
    order by o.name collate "C"`;
}

/** An account as sign-in needs it. */
export interface Account {
  readonly id: number;
  readonly name: string;
  readonly role: Role;
  /** Null for who signs in by OpenID Connect. */
  readonly passwordHash: string | null;
  readonly isDisabled: boolean;
  /** A session of an earlier epoch is over. */
  readonly sessionEpoch: number;
}

export async function accountNamed(sql: Sql, name: string): Promise<Account | undefined> {
  const [account] = await sql<Account[]>`
    select id, name, role, password_hash as "passwordHash", disabled_at is not null as "isDisabled",
      session_epoch as "sessionEpoch"
    from operators where name = ${name}`;
  return account;
}
