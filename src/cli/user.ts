import type { Environment } from '../config/config.ts';
import { deleteUser, listUsers, renameUser, type User, type UserName } from '../db/queries/users.ts';
import { CommandFailure, UsageFailure } from './failure.ts';
import { existingOrganization, readId } from './identifier.ts';
import { alignedTable, printJson } from './table.ts';
import { openWriteTier, publishNow } from './write-tier.ts';

interface OfOrganization {
  /** The organization's slug. */
  readonly org: string;
  readonly json?: boolean;
}

export async function listOrgUsers(env: Environment, options: OfOrganization): Promise<void> {
  const { tier } = openWriteTier(env);
  await using _ = tier;
  const organization = await existingOrganization(tier.store, options.org);
  const users = await listUsers(tier.store.sql, organization.id);
  if (options.json) return printJson(users);
  if (users.length === 0) console.log(`no cluster of ${organization.slug} names who made it`);
  else process.stdout.write(userTable(users));
}

export function userTable(users: readonly User[]): string {
  return alignedTable(
    ['ID', 'FIRST NAME', 'LAST NAME', 'CLUSTERS'],
    users.map(({ id, firstName, lastName, clusters }) => [String(id), firstName, lastName, String(clusters)]),
  );
}

export async function renameOrgUser(
  env: Environment,
  text: string,
  options: OfOrganization & { firstName: string; lastName: string },
): Promise<void> {
  const id = readUserId(text);
  const name = { firstName: options.firstName.trim(), lastName: options.lastName.trim() };
  if (name.firstName === '' && name.lastName === '') {
    throw new UsageFailure(
      `--first-name and --last-name are both empty; to show nobody: fleetbook user delete ${id} --org ${options.org}`,
    );
  }
  if (/\p{Cc}/u.test(name.firstName + name.lastName)) {
    throw new UsageFailure('--first-name and --last-name must be names that can be shown, each on one line');
  }
  const { tier } = openWriteTier(env);
  await using _ = tier;
  const organization = await existingOrganization(tier.store, options.org);
  const renamed = await renameUser(tier.store.sql, organization.id, id, name);
  if (!renamed) throw new CommandFailure(noUser(id, organization.slug));
  const published = await publishNow(tier);
  if (options.json) return printJson({ ...renamed, ...name, published });
  console.log(
    `${shown(renamed.was)} is shown as ${shown(name)} (id ${renamed.id}) from now on, in ${clusters(renamed.clusters)}${later(published)}`,
  );
}

export async function deleteOrgUser(env: Environment, text: string, options: OfOrganization): Promise<void> {
  const id = readUserId(text);
  const { tier } = openWriteTier(env);
  await using _ = tier;
  const organization = await existingOrganization(tier.store, options.org);
  const deleted = await deleteUser(tier.store.sql, organization.id, id);
  if (!deleted) throw new CommandFailure(noUser(id, organization.slug));
  const published = await publishNow(tier);
  if (options.json) return printJson({ id, was: deleted.was, clusters: deleted.clusters, published });
  console.log(
    `${shown(deleted.was)} is deleted: ${clusters(deleted.clusters)} without a name from now on, also where a control plane says it again${later(published)}`,
  );
}

const readUserId = (text: string) => readId(text, 'user', '`fleetbook user list` shows');
const noUser = (id: number, slug: string) =>
  `${slug} has no user ${id}; see fleetbook user list --org ${slug}`;
const shown = ({ firstName, lastName }: UserName) => `${firstName} ${lastName}`.trim();
const clusters = (count: number) => `${count} cluster${count === 1 ? '' : 's'}`;
const later = (published: boolean) => (published ? '' : '; the cache is away and gets it later');
