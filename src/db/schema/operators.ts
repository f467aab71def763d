import { ROLES, WAYS } from '../../domain/operator.ts';
import { check, index, pgTable, sql, uniqueIndex } from '../connection/drizzle.ts';
import { bytes, instant, reference } from './shared-columns.ts';

const oneOf = (values: readonly string[]) =>
  sql.join(
    values.map((value) => sql.raw(`'${value}'`)),
    sql`, `,
  );

/** Operators are disabled and never deleted: a name in the audit log keeps its meaning. */
export const operators = pgTable(
  'operators',
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    name: c.text('name').notNull().unique(),
    role: c.text('role', { enum: ROLES }).notNull(),
    /** Null for an operator who signs in with tokens, or has not signed in yet. */
    oidcIssuer: c.text('oidc_issuer'),
    oidcSubject: c.text('oidc_subject'),
    /** The verified email address at the last sign-in by OpenID Connect. */
    verifiedAddress: c.text('verified_address'),
    /** The next sign-in by OpenID Connect with the name as verified address takes the account. */
    awaitsOidc: c.boolean('awaits_oidc').notNull().default(false),
    createdAt: instant('created_at').notNull().defaultNow(),
    disabledAt: instant('disabled_at'),
  }),
  (t) => [
    uniqueIndex('one_operator_per_oidc_subject').on(t.oidcIssuer, t.oidcSubject),
    check('operators_have_a_role', sql`${t.role} in (${oneOf(ROLES)})`),
  ],
);

/** Tokens of operators. Only the SHA-256 is stored. A revoked token keeps its row. */
export const operatorTokens = pgTable(
  'operator_tokens',
  (c) => ({
    id: c.integer('id').primaryKey().generatedByDefaultAsIdentity(),
    operatorId: reference('operator_id', () => operators.id),
    name: c.text('name'),
    hash: bytes('hash').notNull().unique(),
    createdAt: instant('created_at').notNull().defaultNow(),
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
    lastUsedAt: instant('last_used_at'),
  }),
  (t) => [index('operator_tokens_by_operator').on(t.operatorId)],
);

/** Sessions. A sign-out deletes the row; the end of the token or the operator ends the session too. */
export const operatorSessions = pgTable('operator_sessions', (c) => ({
  digest: bytes('digest').primaryKey(),
  operatorId: c.integer('operator_id').references(() => operators.id),
  tokenId: c.integer('token_id').references(() => operatorTokens.id),
  beganAt: instant('began_at').notNull(),
  usedAt: instant('seen_at').notNull(),
}));

/** Actions. The transaction of the action writes the row. Rows are never changed or deleted. */
export const auditLog = pgTable(
  'audit_log',
  (c) => ({
    id: c.bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    at: instant('at').notNull().defaultNow(),
    /** An operator's name, or the name given to a command. No foreign key: commands need no account. */
    by: c.text('by').notNull(),
    how: c.text('how', { enum: WAYS }).notNull(),
    tokenId: c.integer('token_id'),
    address: c.text('address'),
    action: c.text('action').notNull(),
    subjectKind: c.text('subject_kind').notNull(),
    subjectId: c.text('subject_id').notNull(),
    reason: c.text('reason'),
    details: c.jsonb('details').notNull().default({}),
  }),
  (t) => [
    index('audit_log_by_time').on(t.at),
    index('audit_log_by_subject').on(t.subjectKind, t.subjectId, t.id),
    index('audit_log_by_person').on(t.by, t.id),
    index('audit_log_by_action').on(t.action, t.id),
    check('audit_log_says_how', sql`${t.how} in (${oneOf(WAYS)})`),
  ],
);
