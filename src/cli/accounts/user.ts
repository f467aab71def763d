import type { Command } from 'commander';
import { renamedPerson } from '../../app/actions/inputs.ts';
import type { CommandContext } from '../../app/feature.ts';
import type { Environment } from '../../config/config.ts';
import { listUsers, type UserName } from '../../db/users.ts';
import { CommandFailure } from '../terminal/failure.ts';
import { existingOrganization } from '../terminal/find-named.ts';
import { openDatabase, openWriter } from '../terminal/open.ts';
import {
  add,
  addChange,
  type ChangingOf,
  type Deciding,
  type OfOrganization,
  ORG,
  readArguments,
  readId,
  YES,
} from '../terminal/options.ts';
import { alignedTable, count, show, updatedLater } from '../terminal/output.ts';
import { confirm } from '../terminal/terminal.ts';

export function define(program: Command, { env }: CommandContext): void {
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
    .option(...YES)
    .action((id: string, options) => deleteOrgUser(env(), id, options));
}

export async function listOrgUsers(env: Environment, options: OfOrganization): Promise<void> {
  await using database = openDatabase(env);
  const { id, slug } = await existingOrganization(database.db, options.org);
  const users = await listUsers(database.db, id);
  show(options, users, () =>
    users.length === 0
      ? `no cluster of ${slug} names its creator`
      : alignedTable(
          ['ID', 'FIRST NAME', 'LAST NAME', 'CLUSTERS'],
          users.map((user) => [String(user.id), user.firstName, user.lastName, String(user.clusters)]),
        ),
  );
}

async function renameOrgUser(
  env: Environment,
  text: string,
  options: ChangingOf & { firstName: string; lastName: string },
): Promise<void> {
  const id = readUserId(text);
  const remedy = `to remove the name: fleetbook user delete ${id} --org ${options.org}`;
  const name = readArguments(renamedPerson(remedy), options);
  await using writer = await openWriter(env, options);
  const organization = await existingOrganization(writer.store.db, options.org);
  const renamed = await writer.changes.renameUser(organization, id, name);
  if (!renamed) throw noUser(id, organization.slug);
  const published = await writer.publish();
  show(
    options,
    { ...renamed, ...name, published },
    () =>
      `${nameText(renamed.was)} is now ${nameText(name)} (id ${renamed.id}), in ${count(renamed.clusters, 'cluster')}${updatedLater(published)}`,
  );
}

async function deleteOrgUser(env: Environment, text: string, options: ChangingOf & Deciding): Promise<void> {
  const id = readUserId(text);
  await using writer = await openWriter(env, options);
  const { db } = writer.store;
  const organization = await existingOrganization(db, options.org);
  if (!options.yes) {
    const user = (await listUsers(db, organization.id)).find((each) => each.id === id);
    if (!user) throw noUser(id, organization.slug);
    const question = `This removes ${nameText(user)} from ${count(user.clusters, 'cluster')} for good.`;
    await confirm(question, 'nothing was deleted');
  }
  const deleted = await writer.changes.deleteUser(organization, id);
  if (!deleted) throw noUser(id, organization.slug);
  const published = await writer.publish();
  const { was, clusters } = deleted;
  show(
    options,
    { id, was, clusters, published },
    () =>
      `${nameText(was)} is deleted: ${count(clusters, 'cluster')} without a name, even if a control plane sends the name again${updatedLater(published)}`,
  );
}

const readUserId = (text: string) => readId(text, 'user id', '`fleetbook user list` shows');
const noUser = (id: number, slug: string) =>
  new CommandFailure(`${slug} has no user ${id}; see fleetbook user list --org ${slug}`);
const nameText = ({ firstName, lastName }: UserName) => `${firstName} ${lastName}`.trim();
