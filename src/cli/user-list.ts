import type { Environment } from '../config/source-config.ts';
import { listUsers, type User } from '../db/reads/users.ts';
import { openReadOnly } from './open-read-only.ts';
import { existingOrganization } from './org-list.ts';
import { print, printJson, printText } from './print.ts';
import { alignedTable } from './table.ts';

export async function listOrgUsers(
  env: Environment,
  options: { org: string; json?: boolean },
): Promise<void> {
  await using register = openReadOnly(env);
  const organization = await existingOrganization(register.sql, options.org);
  const users = await listUsers(register.sql, organization.id);
  if (options.json) return printJson(users);
  if (users.length === 0) print(`no cluster of ${organization.slug} names who made it`);
  else printText(userTable(users));
}

function userTable(users: readonly User[]): string {
  return alignedTable(
    ['ID', 'FIRST NAME', 'LAST NAME', 'CLUSTERS'],
    users.map(({ id, firstName, lastName, clusters }) => [String(id), firstName, lastName, String(clusters)]),
  );
}
