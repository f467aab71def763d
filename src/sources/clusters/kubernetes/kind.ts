import type { ClusterItem } from '../../source.ts';
import type { Naming } from './naming.ts';

/** Another object, to which one refers by its name. */
export interface Reference {
  /** For an operator, e.g. `template acme/usual`. */
  readonly what: string;
  /** Undefined where no object can have that name. */
  readonly path: string | undefined;
  /** Without its verb: what the credentials must be allowed to `get`. */
  readonly resource: string;
}

/** The object that a reference names, or why it cannot be had, as what follows "the object". */
export type Found = { readonly object: unknown } | { readonly missing: string };

/** An object whose clusters cannot be told without others. */
export interface Deferred {
  readonly needs: readonly Reference[];
  /** All of the object that is read: while it is equal, the object has not changed. */
  readonly object: unknown;
  /** @param found what was found of each need, in their order */
  read(found: readonly Found[]): readonly ClusterItem[];
}

/** The clusters in an object, or what it takes to tell them. */
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
  /** What becomes of its fields, as Markdown: part of docs/adapters.md. */
  readonly notes: string;
  /** The clusters in one object, unread parts of it tolerated; what cannot be used is rejected with its reason. */
  read(object: unknown, naming: Naming): Reading;
}
