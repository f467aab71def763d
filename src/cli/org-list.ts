import type { Environment } from '../config/source-config.ts';
import type { Sql } from '../db/connect.ts';
import {
  findOrganization,
  listOrganizations,
  type Organization,
  type OrganizationSummary,
} from '../db/reads/organizations.ts';
import { CommandFailure } from './failure.ts';
import { openReadOnly } from './open-read-only.ts';
import { print, printJson, printText } from './print.ts';
import { ago, alignedTable } from './table.ts';

export async function listOrgs(env: Environment, options: { all?: boolean; json?: boolean }): Promise<void> {
  await using register = openReadOnly(env);
  const found = await listOrganizations(register.sql, options.all ?? false);
  if (options.json) return printJson(found);
  if (found.length === 0) print('there is no organization; make one: fleetbook org create <slug>');
  else printText(organizationTable(found, new Date()));
}

export function organizationTable(found: readonly OrganizationSummary[], now: Date): string {
  const anyDeleted = found.some(({ deletedAt }) => deletedAt !== null);
  return alignedTable(
    ['ORGANIZATION', 'NAME', 'CLUSTERS', 'TOKENS', 'MADE', ...(anyDeleted ? ['DELETED'] : [])],
    found.map(({ slug, name, clusters, tokens, createdAt, deletedAt }) => [
      slug,
      name,
      String(clusters),
      String(tokens),
      ago(createdAt, now),
      ...(anyDeleted ? [ago(deletedAt, now)] : []),
    ]),
  );
}

/** @throws CommandFailure for one that does not exist or was deleted */
export async function existingOrganization(sql: Sql, slug: string): Promise<Organization> {
  const organization = await findOrganization(sql, slug);
  if (organization) return organization;
  throw noOrganization(slug);
}

/** The failure of a command that names none. */
export function noOrganization(slug: string): CommandFailure {
  return new CommandFailure(
    `there is no organization "${slug}", or it was deleted; \`fleetbook org list --all\` shows both, \`fleetbook org create <slug>\` makes one, under a slug that was never taken`,
  );
}
