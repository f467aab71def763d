import type { DescribedCluster } from '../../src/domain/cluster.ts';
import type { SourceFailureKind } from '../../src/sources/source.ts';
import type { Json } from './catalogue-case.ts';

/** One answer of a control plane, written by this project's authors from the facts of its format. */
export interface ClusterPage {
  readonly path: string;
  /** Which of the adapter's endpoints it is, where that is not its path. */
  readonly endpoint?: string;
  /** The whole query with which the adapter must ask for it. */
  readonly query: Readonly<Record<string, string>>;
  readonly json: Json;
  readonly headers?: Readonly<Record<string, string>>;
  /** The field that holds the rows; `''` where the document is the list itself. */
  readonly list: string;
  /** JSON pointers, `*` for any name, to objects whose names are data, so that one more would be a label or the like. */
  readonly maps?: readonly string[];
  /** JSON pointers to fields of this page without any of which the answer, or its row, cannot be used. */
  readonly required: readonly string[];
  /** JSON pointers to fields that may be missing: the row is still a cluster, with the same key. */
  readonly optional: readonly string[];
  /** What it means when the list is empty: so many clusters are left, or the reading fails. */
  readonly empty: { readonly clusters: number } | { readonly fails: SourceFailureKind };
}

/** What `test/conformance/clusters-<id>.ts` exports as `clusterCase` for the adapter of that id. */
export interface ClusterCase {
  /** What the source's URL has behind the host; the paths of the pages are whole all the same. */
  readonly basePath?: string;
  readonly options?: Readonly<Record<string, string>>;
  readonly pages: readonly ClusterPage[];
  /** What the adapter may ask for besides, once a page was refused. */
  readonly afterRefusal?: readonly { readonly path: string; readonly json: Json }[];
  /**
   * True where the adapter asks through a client of its own: what silence, a missing page and one that has expired mean
   * to that, its own tests say.
   */
  readonly ownClient?: boolean;
  /** True where a list that has not changed is not read again; it has one page then. */
  readonly conditional?: boolean;
  /** Text inside the pages that must never be handed on. */
  readonly secrets?: readonly string[];
  readonly clusters: readonly DescribedCluster[];
  readonly rejected: readonly {
    readonly key: string;
    readonly organization?: string;
    readonly reason: RegExp;
  }[];
}

/**
 * The case of an adapter.
 * @throws Error when it has none: an adapter that no case covers is not done
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
