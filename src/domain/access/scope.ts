/** What a token may read. */
export const SCOPES = ['machines:read', 'clusters:read'] as const;
export type Scope = (typeof SCOPES)[number];
