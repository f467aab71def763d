import type { ClusterItem } from '../../source.ts';

export interface Naming {
  readonly organizationLabel?: string | undefined;
  readonly instanceTypeLabel: string;
  readonly regionLabel: string;
  readonly providerLabel: string;
  readonly creatorLabel: string;
}

export interface Reference {
  /** For an operator, e.g. `template acme/usual`. */
  readonly what: string;
  readonly path: string | undefined;
  readonly resource: string;
}

/** The object of a reference; or why it is missing: the end of a sentence that begins with "the object". */
export type ReferencedObject = { readonly object: unknown } | { readonly missing: string };

export interface Deferred {
  readonly needs: readonly Reference[];
  /** The parts of the object that the kind reads. While they are equal, nothing has changed. */
  readonly object: unknown;
  read(found: readonly ReferencedObject[]): readonly ClusterItem[];
}

/** The clusters in an object, or the objects that are needed to read them. */
export type Reading = readonly ClusterItem[] | Deferred;

/** A custom resource with database clusters. Each file of `kinds/` exports one as `kind`. */
export interface ClusterKind {
  readonly id: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  /** The plurals of other resources of that API, which its objects refer to. Each needs one request. */
  readonly refersTo?: readonly string[];
  /** True if the kind is read only if the option `kinds` names it. */
  readonly onRequest?: true;
  readonly notes: string;
  /** Returns the clusters in one object. Unknown parts are ignored; unusable clusters are rejected with a reason. */
  read(object: unknown, naming: Naming): Reading;
}
