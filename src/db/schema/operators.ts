/** Who runs Fleetbook, and what they did. */

import { ROLES, WAYS } from '../../domain/operator.ts';
import {
  bigint,
  boolean,
  check,
  index,
  integer,
  jsonb,
  pgTable,
  sql,
  text,
  uniqueIndex,
} from '../connection/drizzle.ts';
import { bytes, instant } from './columns.ts';

const oneOf = (values: readonly string[]) =>
  sql.join(
    values.map((value) => sql.raw(`'${value}'`)),
    sql`, `,
  );

/** Operators of the console. They are disabled and never deleted, so that a name in the audit log stays theirs. */
export const operators = pgTable(
  'operators',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    name: text('name').notNull().unique(),
    role: text('role', { enum: ROLES }).notNull(),
    /** The person at which issuer; null for an operator who signs in with tokens, or has not signed in yet. */
    oidcIssuer: text('oidc_issuer'),
    oidcSubject: text('oidc_subject'),
    /** The address that the issuer had verified at the last sign-in. */
    verifiedAddress: text('verified_address'),
    /** The person whose verified address is the name gets the account at the next sign-in by OpenID Connect. */
    awaitsOidc: boolean('awaits_oidc').notNull().default(false),
    createdAt: instant('created_at').notNull().defaultNow(),
    disabledAt: instant('disabled_at'),
  },
  (t) => [
    uniqueIndex('one_operator_per_oidc_subject').on(t.oidcIssuer, t.oidcSubject),
    check('operators_have_a_role', sql`${t.role} in (${oneOf(ROLES)})`),
  ],
);

/** Tokens of operators, as API tokens: only the SHA-256 is stored, and a revoked token keeps its row. */
export const operatorTokens = pgTable(
  'operator_tokens',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    operatorId: integer('operator_id')
      .notNull()
      .references(() => operators.id),
    /** Says what uses it; null for a token without a name. */
    name: text('name'),
    hash: bytes('hash').notNull().unique(),
    createdAt: instant('created_at').notNull().defaultNow(),
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
    /** To the minute. */
    lastUsedAt: instant('last_used_at'),
  },
  (t) => [index('operator_tokens_by_operator').on(t.operatorId)],
);

/** Sessions of signed-in operators. A sign-out deletes the row. Its times, its token and its operator end it as well. */
export const operatorSessions = pgTable('operator_sessions', {
  /** SHA-256 of the cookie. */
  digest: bytes('digest').primaryKey(),
  operatorId: integer('operator_id').references(() => operators.id),
  /** The token that opened it; null for OpenID Connect. */
  tokenId: integer('token_id').references(() => operatorTokens.id),
  beganAt: instant('began_at').notNull(),
  /** To the minute. */
  seenAt: instant('seen_at').notNull(),
});

/** Every action that changed something, written by the transaction that did it. Rows are only ever added. */
export const auditLog = pgTable(
  'audit_log',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    at: instant('at').notNull().defaultNow(),
    /** An operator's name, or what a command was given; no reference, since commands need no account. */
    by: text('by').notNull(),
    how: text('how', { enum: WAYS }).notNull(),
    /** The operator token of the request, or of its session; null without one. */
    tokenId: integer('token_id'),
    /** The remote address, or `user@host` of a command's process. */
    address: text('address'),
    /** What was done, e.g. `hold.approve`. */
    action: text('action').notNull(),
    subjectKind: text('subject_kind').notNull(),
    /** A number or a name, as the command that changes it takes it. */
    subjectId: text('subject_id').notNull(),
    reason: text('reason'),
    /** What the action changed, without any secret. */
    details: jsonb('details').notNull().default({}),
  },
  (t) => [
    index('audit_log_by_time').on(t.at),
    index('audit_log_by_subject').on(t.subjectKind, t.subjectId, t.id),
    index('audit_log_by_person').on(t.by, t.id),
    index('audit_log_by_action').on(t.action, t.id),
    check('audit_log_says_how', sql`${t.how} in (${oneOf(WAYS)})`),
  ],
);
