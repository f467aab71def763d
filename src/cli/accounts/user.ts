import type { Command } from 'commander';
import type { Environment } from '../../config/config.ts';
import { administration } from '../../db/administration.ts';
import { listUsers, type User, type UserName } from '../../db/users.ts';
import { readId } from '../terminal/arguments.ts';
import {
  add,
  addChange,
  type ChangingOf,
  type Env,
  type OfOrganization,
  ORG,
} from '../terminal/command-parts.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { openWriter } from '../terminal/open.ts';
import { openDatabase } from '../terminal/open-database.ts';
import { print, printJson, printText } from '../terminal/print.ts';
import { alignedTable, count } from '../terminal/table.ts';
import { existingOrganization } from './org.ts';

export function define(program: Command, env: Env): void {
  const user = program
    .command('user')
    .description('people who created clusters, as control planes name them');
  const ID = ['<id>', 'number that `user list` shows'] as const;
  add(user, 'list', 'show who created an organization’s clusters')
    .requiredOption(...ORG)
    .action((options) => listOrgUsers(env(), options));
  addChange(user, 'rename', 'change the name of a person; merges two people who get the same name')
    .argument(...ID)
    .requiredOption(...ORG)
    .requiredOption('--first-name <name>', 'may be empty')
    .requiredOption('--last-name <name>', 'may be empty')
    .action((id: string, options) => renameOrgUser(env(), id, options));
  addChange(user, 'delete', 'remove a person’s name from clusters')
    .argument(...ID)
    .requiredOption(...ORG)
    .action((id: string, options) => deleteOrgUser(env(), id, options));
}

export async function listOrgUsers(env: Environment, options: OfOrganization): Promise<void> {
  await using database = openDatabase(env);
  const organization = await existingOrganization(database.sql, options.org);
  const users = await listUsers(database.sql, organization.id);
  if (options.json) return printJson(users);
  if (users.length === 0) print(`no cluster of ${organization.slug} names its creator`);
  else printText(userTable(users));
}

function userTable(users: readonly User[]): string {
  return alignedTable(
    ['ID', 'FIRST NAME', 'LAST NAME', 'CLUSTERS'],
    users.map(({ id, firstName, lastName, clusters }) => [String(id), firstName, lastName, String(clusters)]),
  );
}

export async function renameOrgUser(
  env: Environment,
  text: string,
  options: ChangingOf & { firstName: string; lastName: string },
): Promise<void> {
  const id = readUserId(text);
  const name = { firstName: options.firstName.trim(), lastName: options.lastName.trim() };
  if (name.firstName === '' && name.lastName === '') {
    throw new UsageFailure(
      `--first-name and --last-name are both empty; to remove the name: fleetbook user delete ${id} --org ${options.org}`,
    );
  }
  if (/\p{Cc}/u.test(name.firstName + name.lastName)) {
    throw new UsageFailure('--first-name and --last-name must each be one line of visible characters');
  }
  await using writer = await openWriter(env, options);
  const changes = administration(writer.store.db, writer.by);
  const organization = await existingOrganization(writer.store.sql, options.org);
  const renamed = await changes.renameUser(organization, id, name);
  if (!renamed) throw new CommandFailure(noUser(id, organization.slug));
  const published = await writer.publish();
  if (options.json) return printJson({ ...renamed, ...name, published });
  print(
    `${shown(renamed.was)} is now ${shown(name)} (id ${renamed.id}), in ${clusters(renamed.clusters)}${later(published)}`,
  );
}

export async function deleteOrgUser(env: Environment, text: string, options: ChangingOf): Promise<void> {
  const id = readUserId(text);
  await using writer = await openWriter(env, options);
  const changes = administration(writer.store.db, writer.by);
  const organization = await existingOrganization(writer.store.sql, options.org);
  const deleted = await changes.deleteUser(organization, id);
  if (!deleted) throw new CommandFailure(noUser(id, organization.slug));
  const published = await writer.publish();
  if (options.json) return printJson({ id, was: deleted.was, clusters: deleted.clusters, published });
  print(
    `${shown(deleted.was)} is deleted: ${clusters(deleted.clusters)} without a name, even if a control plane sends the name again${later(published)}`,
  );
}

const readUserId = (text: string) => readId(text, 'user id', '`fleetbook user list` shows');
const noUser = (id: number, slug: string) =>
  `${slug} has no user ${id}; see fleetbook user list --org ${slug}`;
const shown = ({ firstName, lastName }: UserName) => `${firstName} ${lastName}`.trim();
const clusters = (n: number) => count(n, 'cluster');
const later = (published: boolean) => (published ? '' : '; the cache cannot be reached and is updated later');
