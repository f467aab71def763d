import type { ClusterKind } from './kind.ts';
import { identityOf } from './metadata.ts';
import type { Settings } from './options.ts';

/** One kind of object in one namespace or in all of them: one list and one watch. */
export type Target = ReturnType<typeof targetOf>;

export function targetsOf(settings: Settings): readonly Target[] {
  const { kinds, namespaces } = settings;
  return kinds.flatMap((kind) => namespaces.map((namespace) => targetOf(kind, namespace, settings)));
}

function targetOf(kind: ClusterKind, namespace: string | undefined, settings: Settings) {
  const { apiVersion, plural } = kind;
  const { labelSelector } = settings;
  const inNamespace = namespace === undefined ? '' : `/namespaces/${namespace}`;
  return {
    apiVersion,
    plural,
    path: `/apis/${apiVersion}${inNamespace}/${plural}`,
    /** For an operator: `clusters.postgresql.cnpg.io`. */
    resource: `${plural}.${apiVersion.split('/')[0]}${namespace === undefined ? '' : ` in namespace ${namespace}`}`,
    query: labelSelector === undefined ? {} : { labelSelector },
    /** Identifies an object, also after a deletion and creation under the same name. */
    identity(object: unknown): string {
      const { uid, where } = identityOf(object);
      return uid ?? where;
    },
    read: (object: unknown) => kind.read(object, settings),
  };
}
