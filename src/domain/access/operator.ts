/** Who runs Fleetbook: what an operator may do, and who is named in the audit log. Pure. */

/** Each may do what those before it may. */
export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** Whether a role includes another one: an admin may do whatever an operator may. */
export function includesRole(has: Role, needed: Role): boolean {
  return ROLES.indexOf(has) >= ROLES.indexOf(needed);
}

/**
 * The way by which an action came: a command, the session of an operator who signed in with a token, a token in the
 * Authorization header (OPS_TOKEN or an operator's), or the session of an operator who signed in by OpenID Connect.
 */
export const WAYS = ['cli', 'console', 'token', 'oidc'] as const;
export type Way = (typeof WAYS)[number];

/** Who acts, as the audit log names them. */
export interface Actor {
  /** An operator's name, or what a command was given, e.g. `ada@desk`. */
  readonly by: string;
  readonly how: Way;
  /** The remote address, or `user@host` of the process of a command. */
  readonly address: string | undefined;
  /** The operator token of the request, or of its session. */
  readonly tokenId?: number | undefined;
}

/** Who acts, and why. */
export interface Decider extends Actor {
  /** For the record; one line. */
  readonly reason: string | undefined;
}

/** Characters of a reason. */
export const LONGEST_REASON = 500;

/** Names of operators, as the audit log shows them. */
export const OPERATOR_NAME = /^[a-z0-9](?:[a-z0-9._@-]{0,62}[a-z0-9])?$/;

/** An operator in a list. Instants are RFC 3339, to the second. */
export interface OperatorSummary {
  readonly name: string;
  readonly role: Role;
  readonly signsInBy: 'token' | 'oidc';
  /** Good tokens. */
  readonly tokens: number;
  /** The address that the issuer has verified. */
  readonly verifiedAddress: string | null;
  readonly createdAt: string;
  readonly disabledAt: string | null;
  readonly lastSeenAt: string | null;
}
