import type { ClusterItem } from '../../source.ts';
import type { Naming } from './naming.ts';

/** A reference of one object to another, by its name. */
export interface Reference {
  /** For an operator, e.g. `template acme/usual`. */
  readonly what: string;
  /** Undefined where no object can have that name. */
  readonly path: string | undefined;
  /** Without its verb: what the credentials must be allowed to `get`. */
  readonly resource: string;
}

/** The object that a reference names; or why it cannot be had, as the end of a sentence that begins "the object". */
export type ReferencedObject = { readonly object: unknown } | { readonly missing: string };

/** An object whose clusters depend on other objects. */
export interface Deferred {
  readonly needs: readonly Reference[];
  /** The parts of the object that are read. While they are equal, nothing has changed. */
  readonly object: unknown;
  /** @param found what was found of each need, in their order */
  read(found: readonly ReferencedObject[]): readonly ClusterItem[];
}

/** The clusters in an object, or what is needed to read them. */
export type Reading = readonly ClusterItem[] | Deferred;

/** A custom resource that describes database clusters. A file of `kinds/` exports one as `kind`. */
export interface ClusterKind {
  /** The file's name, and how the option `kinds` calls it. */
  readonly id: string;
  /** Group and version of its API, e.g. `postgresql.cnpg.io/v1`. */
  readonly apiVersion: string;
  readonly kind: string;
  /** Its name in addresses. */
  readonly plural: string;
  /** The plurals of other resources of that API that its objects refer to: they are asked for one by one. */
  readonly refersTo?: readonly string[];
  /** True where it is read only when the option `kinds` names it. */
  readonly onRequest?: true;
  /** What becomes of its fields, as Markdown: part of docs/adapters.md. */
  readonly notes: string;
  /** The clusters in one object. Unknown parts are ignored; what cannot be used is rejected with its reason. */
  read(object: unknown, naming: Naming): Reading;
}
