/** Names of documents. The organization is part of a cluster document's name. */
export type DocumentName =
  | { readonly kind: 'providers' }
  | { readonly kind: 'region'; readonly regionId: number }
  /** The machines of a region as columns, for the search. */
  | { readonly kind: 'columns'; readonly regionId: number }
  | { readonly kind: 'clusters'; readonly organizationId: number }
  /** `hash` is the token's SHA-256 in hexadecimal. */
  | { readonly kind: 'token'; readonly hash: string };

/** A document that has its own version row in Postgres. One row may count the version of several documents. */
export type RowName = Exclude<DocumentName, { kind: 'columns' }>;

/** Returns the name of the version row of a document. */
export function rowName(name: DocumentName): RowName {
  return name.kind === 'columns' ? { kind: 'region', regionId: name.regionId } : name;
}

/** Returns the documents of a version row. They are published together, the row's own document last. */
export function documentsOfRow(name: RowName): DocumentName[] {
  return name.kind === 'region' ? [{ kind: 'columns', regionId: name.regionId }, name] : [name];
}
