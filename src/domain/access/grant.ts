import type { Scope } from './token.ts';

/** What a valid token allows. The organization of a request comes from here and from nowhere else. */
export interface Grant {
  readonly tokenId: number;
  readonly organizationId: number;
  readonly scopes: readonly Scope[];
}
