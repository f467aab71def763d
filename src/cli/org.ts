import type { Environment } from '../config.ts';
import { createOrganization } from '../store/organizations.ts';
import { CommandFailure, UsageFailure } from './failure.ts';
import { openWriteTier, publishNow } from './write-tier.ts';

const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export async function createOrg(env: Environment, slug: string, options: { name?: string }): Promise<void> {
  if (!SLUG.test(slug)) {
    throw new UsageFailure(
      `"${slug}" is no slug; use 1 to 63 lower-case letters, digits and dashes, e.g. fleetbook org create acme --name "Acme Ltd"`,
    );
  }
  const { tier } = openWriteTier(env);
  await using _ = tier;
  const made = await createOrganization(tier.store.db, slug, options.name ?? slug);
  if (!made)
    throw new CommandFailure(
      `the slug "${slug}" is taken, perhaps by an organization that was deleted; choose another`,
    );
  await publishNow(tier);
  console.log(
    `organization ${made.slug} (id ${made.id}) made; give it a token: fleetbook token create --org ${made.slug}`,
  );
}
