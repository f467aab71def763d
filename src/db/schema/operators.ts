/** Who runs Fleetbook, and what they did. */

import { ROLES, WAYS } from '../../domain/operator.ts';
import { bigint, check, index, integer, jsonb, pgTable, sql, text, uniqueIndex } from '../drizzle.ts';
import { bytes, instant } from './columns.ts';

const oneOf = (values: readonly string[]) =>
  sql.join(
    values.map((value) => sql.raw(`'${value}'`)),
    sql`, `,
  );

/** Accounts of the operators' pages. They are disabled and never deleted, so that a name in the audit log stays theirs. */
export const operators = pgTable(
  'operators',
  {
    id: integer('id').primaryKey().generatedByDefaultAsIdentity(),
    name: text('name').notNull().unique(),
    role: text('role', { enum: ROLES }).notNull(),
    /** scrypt with its parameters, see domain/password.ts; null for who signs in by OpenID Connect. */
    passwordHash: text('password_hash'),
    /** Who it is at which issuer; null for who signs in by a password, or has not signed in yet. */
    oidcIssuer: text('oidc_issuer'),
    oidcSubject: text('oidc_subject'),
    /** The address that the issuer had verified at the last sign-in. */
    verifiedAddress: text('verified_address'),
    createdAt: instant('created_at').notNull().defaultNow(),
    disabledAt: instant('disabled_at'),
    /** Part of every session; a session of an earlier epoch is over. */
    sessionEpoch: integer('session_epoch').notNull().default(1),
  },
  (t) => [
    uniqueIndex('one_operator_per_oidc_subject').on(t.oidcIssuer, t.oidcSubject),
    check('operators_have_a_role', sql`${t.role} in (${oneOf(ROLES)})`),
    check('operators_sign_in_by_one_way', sql`${t.passwordHash} is null or ${t.oidcSubject} is null`),
  ],
);

/** Sessions of signed-in operators. A sign-out deletes the row; its times, the account and the epoch end it as well. */
export const operatorSessions = pgTable('operator_sessions', {
  /** SHA-256 of the random id in the cookie. */
  digest: bytes('digest').primaryKey(),
  /** Null for a session that OPS_TOKEN opened. */
  operatorId: integer('operator_id').references(() => operators.id),
  /** The account's epoch at sign-in, or a mark of OPS_TOKEN. */
  epoch: text('epoch').notNull(),
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
