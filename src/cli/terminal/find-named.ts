/** Finds what options name, or ends the command with the remedy. */
import type { Database } from '../../db/connection/client.ts';
import { findOrganization, type Organization } from '../../db/organizations.ts';
import { providerNames } from '../../db/providers.ts';
import { CommandFailure, UsageFailure } from './failure.ts';

/** Finds a provider by name or id; undefined without the option. @throws UsageFailure that lists the providers */
export async function knownProvider(
  db: Database,
  text: string | undefined,
): Promise<{ id: number; name: string } | undefined> {
  if (text === undefined) return undefined;
  const names = await providerNames(db);
  for (const [id, name] of names) {
    if (String(id) === text || name.toLowerCase() === text.toLowerCase()) return { id, name };
  }
  const known = [...names].map(([id, name]) => `${name} (${id})`).join(', ');
  throw new UsageFailure(
    `--provider ${JSON.stringify(text)}: there is no such provider; ${known === '' ? 'none is stored yet' : `known providers: ${known}`}`,
  );
}

/** @throws CommandFailure if the organization does not exist or is deleted */
export async function existingOrganization(db: Database, slug: string): Promise<Organization> {
  const organization = await findOrganization(db, slug);
  if (organization) return organization;
  throw noOrganization(slug);
}

export function noOrganization(slug: string): CommandFailure {
  return new CommandFailure(
    `there is no organization "${slug}", or it is deleted; \`fleetbook org list --all\` shows all, \`fleetbook org create <slug>\` creates one with a new slug`,
  );
}
