/** What is published as one document each. The organization is part of a cluster document's name. */
export type DocumentName =
  | { readonly kind: 'providers' }
  | { readonly kind: 'region'; readonly regionId: number }
  | { readonly kind: 'clusters'; readonly organizationId: number }
  /** `hash` is the token's SHA-256 in hexadecimal. */
  | { readonly kind: 'token'; readonly hash: string };
