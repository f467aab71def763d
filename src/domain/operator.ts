/** Each role includes those before it. */
export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export function includesRole(has: Role, needed: Role): boolean {
  return ROLES.indexOf(has) >= ROLES.indexOf(needed);
}

/**
 * How an action reached Fleetbook:
 * - `cli`: a command;
 * - `console`: a session that began with an operator token;
 * - `token`: an Authorization header with OPS_TOKEN or an operator token;
 * - `oidc`: a session that began with OpenID Connect.
 */
export const WAYS = ['cli', 'console', 'token', 'oidc'] as const;
export type Way = (typeof WAYS)[number];

export interface Actor {
  /** An operator's name, or the `--by` of a command, e.g. `ada@desk`. */
  readonly by: string;
  readonly how: Way;
  /** The remote address; for a command `user@host` of its process. */
  readonly address: string | undefined;
  /** The operator token of the request, or of its session. */
  readonly tokenId?: number | undefined;
}

export interface Decider extends Actor {
  readonly reason: string | undefined;
}

export const LONGEST_REASON = 500;

export const OPERATOR_NAME = /^[a-z0-9](?:[a-z0-9._@-]{0,62}[a-z0-9])?$/;

/** An operator in a list. Instants are RFC 3339, to the second. */
export interface OperatorSummary {
  readonly name: string;
  readonly role: Role;
  readonly signsInBy: 'token' | 'oidc';
  readonly tokens: number;
  /** The address that the OpenID Connect issuer has verified. */
  readonly verifiedAddress: string | null;
  readonly createdAt: string;
  readonly disabledAt: string | null;
  readonly lastSeenAt: string | null;
}

/** Returns the details of an entry of the audit log on one line: `name=Acme tokens=2`. */
export function detailsText(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}
