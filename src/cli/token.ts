import type { Environment } from '../config.ts';
import { SCOPES, type Scope } from '../domain/token.ts';
import { findOrganization } from '../store/organizations.ts';
import { createToken, revokeToken } from '../store/tokens.ts';
import { CommandFailure, UsageFailure } from './failure.ts';
import { openWriteTier, publishNow } from './write-tier.ts';

export async function createTokenCommand(
  env: Environment,
  options: { org: string; scope?: string[]; expires?: string },
): Promise<void> {
  const scopes = readScopes(options.scope);
  const expiresAt = options.expires === undefined ? undefined : readExpiry(options.expires, new Date());
  const { tier } = openWriteTier(env);
  await using _ = tier;
  const organization = await findOrganization(tier.store.db, options.org);
  if (!organization) {
    throw new CommandFailure(
      `there is no organization "${options.org}"; make it: fleetbook org create ${options.org}`,
    );
  }
  const { id, token } = await createToken(tier.store.db, {
    organizationId: organization.id,
    scopes,
    expiresAt,
  });
  await publishNow(tier);
  console.log(token);
  console.error(
    `token ${id} of ${organization.slug}, ${scopes.join(' ')}, ${
      expiresAt ? `until ${expiresAt.toISOString()}` : 'without an expiry'
    }. It is shown once; revoke it with: fleetbook token revoke ${id}`,
  );
}

export async function revokeTokenCommand(env: Environment, text: string): Promise<void> {
  const id = /^[1-9]\d{0,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(id <= 2_147_483_647)) {
    throw new UsageFailure(
      `"${text}" is no token id; it is the number that \`token create\` printed, not the token`,
    );
  }
  const { tier } = openWriteTier(env);
  await using _ = tier;
  const outcome = await revokeToken(tier.store.db, id);
  if (outcome === undefined) throw new CommandFailure(`there is no token ${id}`);
  const published = await publishNow(tier);
  if (outcome === 'was revoked') console.log(`token ${id} was revoked already`);
  else if (published) console.log(`token ${id} is revoked`);
  else
    console.log(`token ${id} is revoked; the cache is away, so readers may accept it for up to 10 seconds`);
}

/** @throws UsageFailure for a scope that there is not */
export function readScopes(given: readonly string[] | undefined): readonly Scope[] {
  if (!given) return SCOPES;
  const scopes = given.flatMap((text) => text.split(','));
  return scopes.map((text) => {
    const scope = SCOPES.find((known) => known === text);
    if (!scope) throw new UsageFailure(`"${text}" is no scope; use ${SCOPES.join(' or ')}`);
    return scope;
  });
}

const UNITS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A span from `now` (`90d`, `12h`, `30m`) or a date. @throws UsageFailure when it is neither, or not ahead */
export function readExpiry(text: string, now: Date): Date {
  const span = /^([1-9]\d{0,4})([mhd])$/.exec(text);
  const unit = UNITS[span?.[2] ?? ''];
  const at =
    span && unit
      ? new Date(now.getTime() + Number(span[1]) * unit)
      : /^\d{4}-\d{2}-\d{2}(T[\d:.]+Z)?$/.test(text)
        ? new Date(text)
        : undefined;
  if (!at || Number.isNaN(at.getTime())) {
    throw new UsageFailure(
      `--expires "${text}" is no time; use e.g. 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z`,
    );
  }
  if (at <= now) throw new UsageFailure(`--expires "${text}" lies in the past; give a time ahead`);
  return at;
}
