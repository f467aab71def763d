import { publishNow } from '../../app/actions/publish.ts';
import type { Environment } from '../../config/config.ts';
import { administration } from '../../db/administration.ts';
import { listUsers, type User, type UserName } from '../../db/users.ts';
import { type DeciderOptions, decider, readId } from '../terminal/arguments.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { openWriter } from '../terminal/open.ts';
import { openDatabase } from '../terminal/open-database.ts';
import { print, printJson, printText } from '../terminal/print.ts';
import { alignedTable } from '../terminal/table.ts';
import { existingOrganization } from './org.ts';

export async function listOrgUsers(
  env: Environment,
  options: { org: string; json?: boolean },
): Promise<void> {
  await using register = openDatabase(env);
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

interface OfOrganization extends DeciderOptions {
  /** The organization's slug. */
  readonly org: string;
  readonly json?: boolean;
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
  const { config, writer } = openWriter(env);
  await using _ = writer;
  const changes = administration(writer.store.db, decider(config, options));
  const organization = await existingOrganization(writer.store.sql, options.org);
  const renamed = await changes.renameUser(organization, id, name);
  if (!renamed) throw new CommandFailure(noUser(id, organization.slug));
  const published = await publishNow(writer);
  if (options.json) return printJson({ ...renamed, ...name, published });
  print(
    `${shown(renamed.was)} is shown as ${shown(name)} (id ${renamed.id}) from now on, in ${clusters(renamed.clusters)}${later(published)}`,
  );
}

export async function deleteOrgUser(env: Environment, text: string, options: OfOrganization): Promise<void> {
  const id = readUserId(text);
  const { config, writer } = openWriter(env);
  await using _ = writer;
  const changes = administration(writer.store.db, decider(config, options));
  const organization = await existingOrganization(writer.store.sql, options.org);
  const deleted = await changes.deleteUser(organization, id);
  if (!deleted) throw new CommandFailure(noUser(id, organization.slug));
  const published = await publishNow(writer);
  if (options.json) return printJson({ id, was: deleted.was, clusters: deleted.clusters, published });
  print(
    `${shown(deleted.was)} is deleted: ${clusters(deleted.clusters)} without a name from now on, also where a control plane says it again${later(published)}`,
  );
}

const readUserId = (text: string) => readId(text, 'user id', '`fleetbook user list` shows');
const noUser = (id: number, slug: string) =>
  `${slug} has no user ${id}; see fleetbook user list --org ${slug}`;
const shown = ({ firstName, lastName }: UserName) => `${firstName} ${lastName}`.trim();
const clusters = (count: number) => `${count} cluster${count === 1 ? '' : 's'}`;
const later = (published: boolean) => (published ? '' : '; the cache is away and gets it later');
