import type { ClusterItem } from '../../source.ts';
import type { Naming } from './naming.ts';

/** A custom resource that describes database clusters. A file of `kinds/` exports one as `kind`. */
export interface ClusterKind {
  /** The file's name, and how the option `kinds` calls it. */
  readonly id: string;
  /** Group and version of its API, e.g. `postgresql.cnpg.io/v1`. */
  readonly apiVersion: string;
  readonly kind: string;
  /** Its name in addresses. */
  readonly plural: string;
  /** What becomes of its fields, as Markdown: part of docs/adapters.md. */
  readonly notes: string;
  /** The clusters in one object, unread parts of it tolerated; what cannot be used is rejected with its reason. */
  read(object: unknown, naming: Naming): readonly ClusterItem[];
}
