import { publishNow } from '../../app/actions/publish.ts';
import type { Environment } from '../../config/config.ts';
import { administration } from '../../db/administration.ts';
import type { Sql } from '../../db/connection/connect.ts';
import {
  findOrganization,
  listOrganizations,
  type Organization,
  type OrganizationSummary,
} from '../../db/organizations.ts';
import { ORGANIZATION_SLUG, readName } from '../../domain/names.ts';
import { type DeciderOptions, decider } from '../terminal/arguments.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { openWriter } from '../terminal/open.ts';
import { openDatabase } from '../terminal/open-database.ts';
import { print, printJson, printText } from '../terminal/print.ts';
import { ago, alignedTable, count } from '../terminal/table.ts';
import { ask, type Terminal } from '../terminal/terminal.ts';

export async function listOrgs(env: Environment, options: { all?: boolean; json?: boolean }): Promise<void> {
  await using register = openDatabase(env);
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

export async function createOrg(
  env: Environment,
  slug: string,
  options: DeciderOptions & { name?: string; json?: boolean },
): Promise<void> {
  if (!ORGANIZATION_SLUG.test(slug)) {
    throw new UsageFailure(
      `"${slug}" is no slug; use 1 to 63 lower-case letters, digits and dashes, e.g. fleetbook org create acme --name "Acme Ltd"`,
    );
  }
  const { config, writer } = openWriter(env);
  await using _ = writer;
  const changes = administration(writer.store.db, decider(config, options));
  const made = await changes.createOrganization(slug, nameOf(options.name ?? slug));
  if (!made)
    throw new CommandFailure(
      `the slug "${slug}" is taken, perhaps by an organization that was deleted; choose another`,
    );
  await publishNow(writer);
  if (options.json) return printJson(made);
  print(
    `organization ${made.slug} (id ${made.id}) made; give it a token: fleetbook token create --org ${made.slug}`,
  );
}

export async function renameOrg(
  env: Environment,
  slug: string,
  options: DeciderOptions & { name: string; json?: boolean },
): Promise<void> {
  const name = nameOf(options.name);
  const { config, writer } = openWriter(env);
  await using _ = writer;
  const changes = administration(writer.store.db, decider(config, options));
  const renamed = await changes.renameOrganization(slug, name);
  if (!renamed) throw noOrganization(slug);
  if (options.json) return printJson(renamed);
  print(`organization ${slug} is called ${renamed.name} now; its slug stays`);
}

export async function deleteOrg(
  env: Environment,
  slug: string,
  options: DeciderOptions & { yes?: boolean; json?: boolean },
): Promise<void> {
  const { config, writer } = openWriter(env);
  await using _ = writer;
  const changes = administration(writer.store.db, decider(config, options));
  if (!options.yes) {
    await existingOrganization(writer.store.sql, slug);
    await confirmSlug(slug, process.stdin, process.stderr);
  }
  const deleted = await changes.deleteOrganization(slug);
  if (!deleted) throw noOrganization(slug);
  const published = await publishNow(writer);
  if (options.json) return printJson({ ...deleted, published });
  print(
    `organization ${slug} is deleted: ${count(deleted.clusters, 'cluster')} shown no more, ${count(deleted.tokens, 'token')} revoked; its slug stays taken${
      published ? '' : '; the cache is away, so readers may accept its tokens for up to 10 seconds'
    }`,
  );
}

function nameOf(text: string): string {
  const name = readName(text);
  if (name !== undefined) return name;
  throw new UsageFailure('--name must be a name that can be shown: some characters, all on one line');
}

/**
 * Asks for the slug once more.
 * @throws UsageFailure where nobody can be asked, and CommandFailure for another answer
 */
export async function confirmSlug(
  slug: string,
  input: Terminal,
  output: NodeJS.WritableStream,
): Promise<void> {
  if (!input.isTTY) {
    throw new UsageFailure(
      `deleting an organization cannot be undone, and there is no terminal to ask at; say so: fleetbook org delete ${slug} --yes`,
    );
  }
  const answer = await ask(
    `This deletes the organization, its clusters and its tokens for good. Type its slug, ${slug}, to go on: `,
    input,
    output,
  );
  if (answer !== slug) throw new CommandFailure('nothing was deleted: that is not the slug');
}
