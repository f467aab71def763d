/** Who runs Fleetbook: what an operator may do, and who is named in the audit log. Pure. */

/** Each may do what those before it may. */
export const ROLES = ['viewer', 'operator', 'admin'] as const;

/** By which way an action came: a command, an operator's session in the console, or OPS_TOKEN. */
export const WAYS = ['cli', 'console', 'token'] as const;
export type Way = (typeof WAYS)[number];

/** Who acts, as the audit log names them. */
export interface Actor {
  /** An operator's name, or what a command was given, e.g. `ada@desk`. */
  readonly by: string;
  readonly how: Way;
  /** The remote address, or `user@host` of the process of a command. */
  readonly address: string | undefined;
}

/** Who acts, and why. */
export interface Decider extends Actor {
  /** For the record; one line. */
  readonly reason: string | undefined;
}
