import type { ClusterKind, Reading } from './kind.ts';
import { identityOf } from './metadata.ts';
import type { Settings } from './options.ts';

/** One kind of object in one namespace or in all of them: one list and one watch. */
export interface Target {
  readonly path: string;
  readonly apiVersion: string;
  readonly plural: string;
  /** For an operator: `clusters.postgresql.cnpg.io`. */
  readonly resource: string;
  readonly query: Readonly<Record<string, string>>;
  /** Identifies an object, also after a deletion and creation under the same name. */
  identity(object: unknown): string;
  read(object: unknown): Reading;
}

export function targetsOf(settings: Settings): readonly Target[] {
  const { kinds, namespaces, labelSelector } = settings;
  return kinds.flatMap((kind) => namespaces.map((namespace) => target(kind, namespace)));

  function target(kind: ClusterKind, namespace: string | undefined): Target {
    const [group = ''] = kind.apiVersion.split('/');
    const inNamespace = namespace === undefined ? '' : `/namespaces/${namespace}`;
    return {
      apiVersion: kind.apiVersion,
      plural: kind.plural,
      path: `/apis/${kind.apiVersion}${inNamespace}/${kind.plural}`,
      resource: `${kind.plural}.${group}${namespace === undefined ? '' : ` in namespace ${namespace}`}`,
      query: labelSelector === undefined ? {} : { labelSelector },
      identity(object) {
        const { uid, where } = identityOf(object);
        return uid ?? where;
      },
      read: (object) => kind.read(object, settings),
    };
  }
}
