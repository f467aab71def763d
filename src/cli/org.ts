import type { Environment } from '../config/config.ts';
import {
  createOrganization,
  deleteOrganization,
  listOrganizations,
  type OrganizationSummary,
  renameOrganization,
} from '../db/queries/organizations.ts';
import { ask, type Terminal } from './confirm.ts';
import { CommandFailure, UsageFailure } from './failure.ts';
import { existingOrganization, noOrganization } from './identifier.ts';
import { ago, alignedTable, count, printJson } from './table.ts';
import { openWriteTier, publishNow } from './write-tier.ts';

const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export async function createOrg(
  env: Environment,
  slug: string,
  options: { name?: string; json?: boolean },
): Promise<void> {
  if (!SLUG.test(slug)) {
    throw new UsageFailure(
      `"${slug}" is no slug; use 1 to 63 lower-case letters, digits and dashes, e.g. fleetbook org create acme --name "Acme Ltd"`,
    );
  }
  const { tier } = openWriteTier(env);
  await using _ = tier;
  const made = await createOrganization(tier.store.db, slug, readName(options.name ?? slug));
  if (!made)
    throw new CommandFailure(
      `the slug "${slug}" is taken, perhaps by an organization that was deleted; choose another`,
    );
  await publishNow(tier);
  if (options.json) return printJson(made);
  console.log(
    `organization ${made.slug} (id ${made.id}) made; give it a token: fleetbook token create --org ${made.slug}`,
  );
}

export async function listOrgs(env: Environment, options: { all?: boolean; json?: boolean }): Promise<void> {
  const { tier } = openWriteTier(env);
  await using _ = tier;
  const found = await listOrganizations(tier.store.sql, options.all ?? false);
  if (options.json) return printJson(found);
  if (found.length === 0) console.log('there is no organization; make one: fleetbook org create <slug>');
  else process.stdout.write(organizationTable(found, new Date()));
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

export async function renameOrg(
  env: Environment,
  slug: string,
  options: { name: string; json?: boolean },
): Promise<void> {
  const name = readName(options.name);
  const { tier } = openWriteTier(env);
  await using _ = tier;
  const renamed = await renameOrganization(tier.store.sql, slug, name);
  if (!renamed) throw noOrganization(slug);
  if (options.json) return printJson(renamed);
  console.log(`organization ${slug} is called ${renamed.name} now; its slug stays`);
}

export async function deleteOrg(
  env: Environment,
  slug: string,
  options: { yes?: boolean; json?: boolean },
): Promise<void> {
  const { tier } = openWriteTier(env);
  await using _ = tier;
  if (!options.yes) {
    await existingOrganization(tier.store, slug);
    await confirmSlug(slug, process.stdin, process.stderr);
  }
  const deleted = await deleteOrganization(tier.store.sql, slug);
  if (!deleted) throw noOrganization(slug);
  const published = await publishNow(tier);
  if (options.json) return printJson({ ...deleted, published });
  console.log(
    `organization ${slug} is deleted: ${count(deleted.clusters, 'cluster')} shown no more, ${count(deleted.tokens, 'token')} revoked; its slug stays taken${
      published ? '' : '; the cache is away, so readers may accept its tokens for up to 10 seconds'
    }`,
  );
}

function readName(text: string): string {
  const name = text.trim();
  if (name !== '' && !/\p{Cc}/u.test(name)) return name;
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
