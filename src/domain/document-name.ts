/** Names of documents. The organization is part of a cluster document's name. */
export type DocumentName =
  | { readonly kind: 'providers' }
  | { readonly kind: 'region'; readonly regionId: number }
  /** The machines of a region as columns, for the search. */
  | { readonly kind: 'columns'; readonly regionId: number }
  | { readonly kind: 'clusters'; readonly organizationId: number }
  /** The own prices of an organization. */
  | { readonly kind: 'price-book'; readonly organizationId: number }
  /** `hash` is the token's SHA-256 in hexadecimal. */
  | { readonly kind: 'token'; readonly hash: string };

/** A document that has its own version row in Postgres. One row may count the version of several documents. */
export type RowName = Exclude<DocumentName, { kind: 'columns' | 'price-book' }>;

/** Returns the name of the version row of a document. */
export function rowName(name: DocumentName): RowName {
  if (name.kind === 'columns') return { kind: 'region', regionId: name.regionId };
  if (name.kind === 'price-book') return { kind: 'clusters', organizationId: name.organizationId };
  return name;
}

/** Returns the documents of a version row. They are published together, the row's own document last. */
export function documentsOfRow(name: RowName): DocumentName[] {
  if (name.kind === 'region') return [{ kind: 'columns', regionId: name.regionId }, name];
  if (name.kind === 'clusters') return [{ kind: 'price-book', organizationId: name.organizationId }, name];
  return [name];
}
