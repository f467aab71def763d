import type { ClusterItem } from '../../source.ts';

/** The labels and annotations, of an object or of its nodes, with the values of a cluster's fields. */
export interface Naming {
  /** The label with the tenant; without it, the namespace is the tenant. */
  readonly organizationLabel?: string | undefined;
  readonly instanceTypeLabel: string;
  readonly regionLabel: string;
  readonly providerLabel: string;
  readonly creatorLabel: string;
}

/** A reference of one object to another one. */
export interface Reference {
  /** For an operator, e.g. `template acme/usual`. */
  readonly what: string;
  /** Undefined if no object can have that name. */
  readonly path: string | undefined;
  /** The resource that the credentials must be allowed to `get`. */
  readonly resource: string;
}

/** The object of a reference; or why it is missing: the end of a sentence that begins with "the object". */
export type ReferencedObject = { readonly object: unknown } | { readonly missing: string };

/** An object whose clusters depend on other objects. */
export interface Deferred {
  readonly needs: readonly Reference[];
  /** The parts of the object that the kind reads. While they are equal, nothing has changed. */
  readonly object: unknown;
  /** @param found the objects of `needs`, in the same order */
  read(found: readonly ReferencedObject[]): readonly ClusterItem[];
}

/** The clusters in an object, or the objects that are needed to read them. */
export type Reading = readonly ClusterItem[] | Deferred;

/** A custom resource with database clusters. Each file of `kinds/` exports one as `kind`. */
export interface ClusterKind {
  /** The name of the file, and the kind's name in the option `kinds`. */
  readonly id: string;
  /** Group and version, e.g. `postgresql.cnpg.io/v1`. */
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
