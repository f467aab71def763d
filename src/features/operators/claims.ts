/** Reads the verified address and the role from the claims of OpenID Connect. Pure. */
import { createHash } from 'node:crypto';
import { OPERATOR_NAME, ROLES, type Role } from '../../domain/operator.ts';
import type { OidcSettings } from './settings.ts';

export type Claims = Readonly<Record<string, unknown>>;

export function roleByClaims(
  claims: Claims,
  { rolesClaim, roles }: Pick<OidcSettings, 'rolesClaim' | 'roles'>,
): Role | undefined {
  const found = claimAt(claims, rolesClaim);
  const groups = new Set(['*', ...(Array.isArray(found) ? found : [found])]);
  const given = new Set(roles.filter(({ group }) => groups.has(group)).map(({ role }) => role));
  return ROLES.findLast((role) => given.has(role));
}

function claimAt(claims: Claims, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  return path.split('.').reduce<unknown>((value, name) => {
    return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }, claims);
}

/** Printable ASCII without spaces: letters of other scripts may look the same. */
const ADDRESS = /^[\x21-\x7e]{1,240}@[\x21-\x7e]{1,253}$/;

/** Returns the email address that the issuer has verified; undefined without one. A person can choose all other names. */
export function verifiedAddress({ email, email_verified: isVerified }: Claims): string | undefined {
  return isVerified === true && typeof email === 'string' && ADDRESS.test(email) ? email : undefined;
}

/** A person of an issuer. Issuer and subject identify the person; the address is for display. */
export interface OidcIdentity {
  readonly issuer: string;
  readonly subject: string;
  readonly address: string | undefined;
}

export function nameOfPerson(person: OidcIdentity): string {
  const lower = person.address?.toLowerCase() ?? '';
  return OPERATOR_NAME.test(lower) ? lower : neutralName(person);
}

/** Returns a name made of issuer and subject, which the person cannot choose. */
export function neutralName({ issuer, subject }: Pick<OidcIdentity, 'issuer' | 'subject'>): string {
  const digest = createHash('sha256').update(`${issuer}\n${subject}`).digest('hex');
  return `oidc-${digest.slice(0, 16)}`;
}

const isObject = (value: unknown): value is Claims => typeof value === 'object' && value !== null;
