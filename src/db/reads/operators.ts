/** Accounts of the operators' pages. See queries/operators.ts. */
import type { Role } from '../../domain/operator.ts';
import type { Sql } from '../client.ts';

/** Instants as RFC 3339, to the second. */
export interface OperatorSummary {
  readonly name: string;
  readonly role: Role;
  readonly signsInBy: 'password' | 'oidc';
  readonly createdAt: string;
  /** Null for one that can sign in. */
  readonly disabledAt: string | null;
  /** When this operator last signed in or changed something in the console. */
  readonly lastSeenAt: string | null;
}

/** Every account, by name. */
export async function listOperators(sql: Sql): Promise<OperatorSummary[]> {
  const instant = (column: string) =>
    sql`to_char(${sql(column)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
  return sql<OperatorSummary[]>`
    select o.name, o.role, case when o.password_hash is null then 'oidc' else 'password' end as "signsInBy",
      ${instant('o.created_at')} as "createdAt", ${instant('o.disabled_at')} as "disabledAt",
      ${instant('seen.last_at')} as "lastSeenAt"
    from operators o
    left join (select by, max(at) as last_at from audit_log where how in ('console', 'oidc') group by by) seen on seen.by = o.name
    order by o.name collate "C"`;
}

/** What sign-in and sessions ask of an account. */
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
  return (await sql<Account[]>`${accounts(sql)} where name = ${name}`)[0];
}

export async function accountById(sql: Sql, id: number): Promise<Account | undefined> {
  return (await sql<Account[]>`${accounts(sql)} where id = ${id}`)[0];
}

const accounts = (sql: Sql) => sql`
  select id, name, role, password_hash as "passwordHash", disabled_at is not null as "isDisabled",
    session_epoch as "sessionEpoch"
  from operators`;
