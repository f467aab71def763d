import type { DescribedCluster } from '../../src/domain/cluster.ts';
import type { SourceFailureKind } from '../../src/sources/source.ts';
import type { Json } from './catalogue-case.ts';

/** One answer of a control plane, written by this project's authors from the facts of its format. */
export interface ClusterPage {
  readonly path: string;
  /** The adapter's endpoint, if it is not the path. */
  readonly endpoint?: string;
  /** The whole query that the adapter must send. */
  readonly query: Readonly<Record<string, string>>;
  readonly json: Json;
  readonly headers?: Readonly<Record<string, string>>;
  /** The field that contains the rows; `''` if the document is the list itself. */
  readonly list: string;
  /**
   * JSON pointers, `*` for any name, to objects whose names are data: an additional field would be a label or
   * similar.
   */
  readonly maps?: readonly string[];
  /** JSON pointers to required fields of this page: without one, the answer or its row is unusable. */
  readonly required: readonly string[];
  /** JSON pointers to optional fields: without one, the row is still a cluster with the same key. */
  readonly optional: readonly string[];
  /** The meaning of an empty list: this many clusters remain, or the read fails. */
  readonly empty: { readonly clusters: number } | { readonly fails: SourceFailureKind };
}

/** The export `clusterCase` of `test/conformance/clusters-<id>.ts` for the adapter of that id. */
export interface ClusterCase {
  /** Path of the source's URL; the pages have complete paths all the same. */
  readonly basePath?: string;
  readonly options?: Readonly<Record<string, string>>;
  readonly pages: readonly ClusterPage[];
  /** Additional allowed requests after a rejected page. */
  readonly afterRefusal?: readonly { readonly path: string; readonly json: Json }[];
  /** Whether the adapter has a special client: its tests cover silence, missing and expired pages. */
  readonly ownClient?: boolean;
  /** Whether an unchanged list is not read again; it has one page then. */
  readonly conditional?: boolean;
  /** Secrets in the pages that must never be passed on. */
  readonly secrets?: readonly string[];
  readonly clusters: readonly DescribedCluster[];
  readonly rejected: readonly {
    readonly key: string;
    readonly organization?: string;
    readonly reason: RegExp;
  }[];
}

/**
 * Returns the case of an adapter.
 * @throws Error if there is none: each adapter needs a case
 */
export async function clusterCaseOf(id: string): Promise<ClusterCase> {
  const file = `clusters-${id}.ts`;
  const module: { clusterCase?: ClusterCase } = await import(
    new URL(`./${file}`, import.meta.url).href
  ).catch((cause: unknown) => {
    throw new Error(`no conformance case for the adapter ${id}: write test/conformance/${file}`, { cause });
  });
  if (module.clusterCase === undefined) throw new Error(`test/conformance/${file} must export clusterCase`);
  return module.clusterCase;
}
