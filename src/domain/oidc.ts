/** What OpenID Connect says of a person: their name and their role. Pure. */
import { OPERATOR_NAME, ROLES, type Role } from './operator.ts';

/** How operators sign in by OpenID Connect. */
export interface OidcSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** By which browsers reach the pages: `https://fleetbook.example.com`. The issuer sends people back to it. */
  readonly origin: string;
  /** `openid` among them, separated by spaces. */
  readonly scopes: string;
  /** The claim that holds a person's groups; its name, or a path such as `realm_access.roles`. */
  readonly rolesClaim: string;
  readonly roles: readonly RoleRule[];
}

/** Who is in the group has the role. */
export interface RoleRule {
  readonly role: Role;
  /** `*` for everybody whom the issuer knows. */
  readonly group: string;
}

export type Claims = Readonly<Record<string, unknown>>;

/** The highest role that a person's groups give; undefined for none. */
export function roleByClaims(
  claims: Claims,
  { rolesClaim, roles }: Pick<OidcSettings, 'rolesClaim' | 'roles'>,
): Role | undefined {
  const found = claimAt(claims, rolesClaim);
  const groups = new Set(['*', ...(Array.isArray(found) ? found : [found])]);
  const given = new Set(roles.filter(({ group }) => groups.has(group)).map(({ role }) => role));
  return ROLES.findLast((role) => given.has(role));
}

/** A claim by its name, or by its path through objects. */
function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  return path.split('.').reduce<unknown>((value, name) => {
    return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }, claims);
}

/**
 * What a person is called here: the address of email that the issuer has verified, else `preferred_username`; in lower
 * case. Undefined where neither can be an operator's name.
 */
export function nameByClaims(claims: Claims): string | undefined {
  const { email, email_verified: isVerified, preferred_username: username } = claims;
  const name = isVerified === true && typeof email === 'string' ? email : username;
  if (typeof name !== 'string') return undefined;
  const lower = name.toLowerCase();
  return OPERATOR_NAME.test(lower) ? lower : undefined;
}

const isObject = (value: unknown): value is Claims => typeof value === 'object' && value !== null;
