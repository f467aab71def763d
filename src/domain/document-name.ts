/** What is published as one document each. The organization is part of a cluster document's name. */
export type DocumentName =
  | { readonly kind: 'providers' }
  | { readonly kind: 'region'; readonly regionId: number }
  /** The machines of a region as columns: what readers search. */
  | { readonly kind: 'columns'; readonly regionId: number }
  | { readonly kind: 'clusters'; readonly organizationId: number }
  /** `hash` is the token's SHA-256 in hexadecimal. */
  | { readonly kind: 'token'; readonly hash: string };

/** A document whose version a row of the database counts. One row may count the version of several. */
export type RowName = Exclude<DocumentName, { kind: 'columns' }>;

/** The document by which the row is known that counts the version of this one. */
export function rowName(name: DocumentName): RowName {
  return name.kind === 'columns' ? { kind: 'region', regionId: name.regionId } : name;
}

/** All documents whose version the row counts. They are published together, the row's own one last. */
export function documentsOfRow(name: RowName): DocumentName[] {
  return name.kind === 'region' ? [{ kind: 'columns', regionId: name.regionId }, name] : [name];
}
