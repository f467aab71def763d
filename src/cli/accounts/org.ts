import type { Command } from 'commander';
import { newOrganization, renamedOrganization } from '../../app/actions/inputs.ts';
import type { CommandContext } from '../../app/feature.ts';
import type { Environment } from '../../config/config.ts';
import { listOrganizations, type OrganizationSummary } from '../../features/console/queries/organizations.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { existingOrganization, noOrganization } from '../terminal/find-named.ts';
import { openDatabase, openWriter } from '../terminal/open.ts';
import {
  add,
  addChange,
  type Changing,
  type Deciding,
  type Json,
  readArguments,
} from '../terminal/options.ts';
import { ago, alignedTable, count, show } from '../terminal/output.ts';
import { prompt, type Terminal } from '../terminal/terminal.ts';

export function define(program: Command, { env }: CommandContext): void {
  const org = program.command('org').description('organizations');
  addChange(org, 'create', 'create an organization')
    .argument('<slug>', 'lower-case letters, digits and dashes')
    .option('--name <name>', 'display name (default: the slug)')
    .action((slug: string, options) => createOrg(env(), slug, options));
  add(org, 'list', 'show every organization, with the number of its clusters and valid tokens')
    .option('--all', 'include deleted organizations')
    .action((options) => listOrgs(env(), options));
  addChange(org, 'rename', 'change the display name of an organization')
    .argument('<slug>', 'slug of the organization; it does not change')
    .requiredOption('--name <name>', 'new display name')
    .action((slug: string, options) => renameOrg(env(), slug, options));
  addChange(org, 'delete', 'delete an organization with its clusters, and revoke its tokens')
    .argument('<slug>', 'slug of the organization')
    .option('--yes', 'delete without asking for the slug again')
    .action((slug: string, options) => deleteOrg(env(), slug, options));
}

export async function listOrgs(env: Environment, options: Json & { all?: boolean }): Promise<void> {
  await using database = openDatabase(env);
  const found = await listOrganizations(database.db, options.all ?? false);
  show(options, found, () =>
    found.length === 0
      ? 'there is no organization; create one: fleetbook org create <slug>'
      : organizationTable(found, new Date()),
  );
}

function organizationTable(found: readonly OrganizationSummary[], now: Date): string {
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

async function createOrg(
  env: Environment,
  slug: string,
  options: Changing & { name?: string },
): Promise<void> {
  const { name } = readArguments(newOrganization, { ...options, slug }, { slug: 'slug' });
  await using writer = await openWriter(env, options);
  const created = await writer.changes.createOrganization(slug, name);
  if (!created)
    throw new CommandFailure(
      `the slug "${slug}" is taken; a deleted organization may have it. Choose another slug`,
    );
  await writer.publish();
  show(
    options,
    created,
    () =>
      `organization ${slug} (id ${created.id}) is created; create a token: fleetbook token create --org ${slug}`,
  );
}

async function renameOrg(
  env: Environment,
  slug: string,
  options: Changing & { name: string },
): Promise<void> {
  const { name } = readArguments(renamedOrganization, options);
  await using writer = await openWriter(env, options);
  const renamed = await writer.changes.renameOrganization(slug, name);
  if (!renamed) throw noOrganization(slug);
  show(
    options,
    renamed,
    () => `organization ${slug} has the name ${renamed.name} now; its slug does not change`,
  );
}

async function deleteOrg(env: Environment, slug: string, options: Deciding): Promise<void> {
  await using writer = await openWriter(env, options);
  if (!options.yes) {
    await existingOrganization(writer.store.db, slug);
    await confirmSlug(slug);
  }
  const deleted = await writer.changes.deleteOrganization(slug);
  if (!deleted) throw noOrganization(slug);
  const published = await writer.publish();
  const { clusters, tokens } = deleted;
  show(
    options,
    { ...deleted, published },
    () =>
      `organization ${slug} is deleted: ${count(clusters, 'cluster')} removed, ${count(tokens, 'token')} revoked; its slug cannot be used again${
        published
          ? ''
          : '; the cache cannot be reached, so readers may accept its tokens for up to 10 seconds'
      }`,
  );
}

/** Asks for the slug again. @throws UsageFailure without a terminal; CommandFailure for another answer */
export async function confirmSlug(
  slug: string,
  input: Terminal = process.stdin,
  output?: NodeJS.WritableStream,
): Promise<void> {
  if (!input.isTTY) {
    throw new UsageFailure(
      `an organization cannot be restored, and there is no terminal to confirm; confirm with: fleetbook org delete ${slug} --yes`,
    );
  }
  const answer = await prompt(
    `This deletes the organization, its clusters and its tokens. It cannot be undone. Type its slug, ${slug}, to continue: `,
    input,
    output,
  );
  if (answer !== slug) throw new CommandFailure('nothing was deleted: the answer is not the slug');
}
