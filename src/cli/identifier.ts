import type { Store } from '../db/connect.ts';
import type { Organization } from '../db/queries/organizations.ts';
import { findOrganization } from '../db/queries/organizations.ts';
import { CommandFailure, UsageFailure } from './failure.ts';

/** A row's id as people give it. @throws UsageFailure that says where such a number is shown */
export function readId(text: string, what: string, whence: string): number {
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
  if (id <= 2_147_483_647) return id;
  throw new UsageFailure(`"${text}" is no ${what} id; it is the number that ${whence}`);
}

/** @throws CommandFailure for one that does not exist or was deleted */
export async function existingOrganization(store: Store, slug: string): Promise<Organization> {
  const organization = await findOrganization(store.db, slug);
  if (organization) return organization;
  throw noOrganization(slug);
}

/** The failure of a command that names none. */
export function noOrganization(slug: string): CommandFailure {
  return new CommandFailure(
    `there is no organization "${slug}", or it was deleted; \`fleetbook org list --all\` shows both, \`fleetbook org create <slug>\` makes one, under a slug that was never taken`,
  );
}
