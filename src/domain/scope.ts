export const SCOPES = ['machines:read', 'clusters:read'] as const;
export type Scope = (typeof SCOPES)[number];

/** What a valid token allows. It is the only source of a request's organization. */
export interface Grant {
  readonly tokenId: number;
  readonly organizationId: number;
  readonly scopes: readonly Scope[];
}
