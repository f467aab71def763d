import type { FastifyInstance } from 'fastify';
import type { Database } from '../../../db/connection/client.ts';
import { organizationsOfTokens } from '../../../db/tokens.ts';
import { BadInput } from '../../../domain/input.ts';
import { readPast } from '../../../domain/text/time-span.ts';
import { integerOf, textOf, windowOf } from '../../../ops/parameters.ts';
import {
  type AuditQuery,
  type AuditRecord,
  type AuditTerms,
  auditPage,
  auditTerms,
} from '../queries/audit.ts';
import type { AuditAnswer, AuditEntry } from './answers.ts';
import type { ConsoleContext } from './context.ts';

const OPERATOR = { config: { access: 'operator' } } as const;

export function addAudit(api: FastifyInstance, { db }: ConsoleContext): void {
  api.get('/audit', OPERATOR, async (request): Promise<AuditAnswer> => {
    const { query } = request;
    const { limit } = windowOf(query);
    // One more row than the page shows whether there are older ones.
    const rows = await auditPage(db, { ...auditQuery(query, new Date()), limit: limit + 1 });
    return { rows: await withOrganizations(db, rows.slice(0, limit)), hasOlder: rows.length > limit };
  });
  api.get('/audit-terms', OPERATOR, (): Promise<AuditTerms> => auditTerms(db));
}

function auditQuery(query: unknown, now: Date): AuditQuery {
  const [kind, id] = [textOf(query, 'kind'), textOf(query, 'id')];
  if (kind === undefined && id !== undefined)
    throw new BadInput('id', 'needs a kind, e.g. kind=organization');
  const since = textOf(query, 'since');
  const from = since === undefined ? undefined : readPast(since, now);
  if (since !== undefined && from === undefined)
    throw new BadInput('since', `must be a time such as 24h, 7d or 2026-01-31; it is "${since}"`);
  return {
    by: textOf(query, 'by'),
    action: textOf(query, 'action'),
    subject: kind === undefined ? undefined : { kind, id },
    since: from,
    before: integerOf(query, 'before', 1, 9_999_999_999),
  };
}

/** Adds to rows about a token or a person the organization whose page shows them. */
async function withOrganizations(db: Database, rows: readonly AuditRecord[]): Promise<AuditEntry[]> {
  const tokens = rows
    .filter(({ subject }) => subject.kind === 'token')
    .map(({ subject }) => Number(subject.id));
  const known = await organizationsOfTokens(db, tokens);
  return rows.map((row) => ({ ...row, organization: organizationOf(row, known) }));
}

function organizationOf(
  { subject, details }: AuditRecord,
  ofTokens: ReadonlyMap<number, string>,
): string | null {
  if (subject.kind === 'token') return ofTokens.get(Number(subject.id)) ?? null;
  if (subject.kind !== 'user') return null;
  return typeof details.organization === 'string' ? details.organization : null;
}
