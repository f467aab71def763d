import type { Scope } from './token.ts';

/** What a valid token allows. The organization of a request comes from here and from nowhere else. */
export interface Grant {
  readonly tokenId: number;
  readonly organizationId: number;
  readonly scopes: readonly Scope[];
}

/** Turns a well-formed token into its grant. */
export interface TokenVerifier {
  /**
   * Undefined for a token that is unknown, expired or revoked: the caller must not learn which.
   * Throws `Unavailable` when that cannot be found out.
   */
  verify(token: string): Promise<Grant | undefined>;
}
