import { z } from 'zod';
import type { DescribedCluster, DescribedDisk } from '../../../domain/cluster.ts';
import { instant } from '../../cluster-fields.ts';
import { label } from '../../schema/fields.ts';
import { orRejected, rejectedRow } from '../../schema/items.ts';
import { labelIn, readRow, unusable } from '../../schema/rows.ts';
import type { ClusterItem } from '../../source.ts';
import type { Naming } from './kind.ts';
import { Labels, machineOf, type NodeAffinity, type Resources, requiredLabel } from './placement.ts';

export const Metadata = z.object({
  name: label,
  namespace: label,
  uid: label,
  creationTimestamp: instant,
  deletionTimestamp: z.string().nullish(),
  labels: Labels,
  annotations: Labels,
});
export type Metadata = z.infer<typeof Metadata>;

/** Of the status of an object, as Kubernetes' conventions have them. */
export const Conditions = z
  .array(z.object({ type: z.string(), status: z.string(), reason: label.nullish() }))
  .nullish();

/** Fields of every cluster of an object, from its labels and annotations. */
type Named = Pick<DescribedCluster, 'tenant' | 'provider' | 'region' | 'user'> & {
  readonly machineType: string | undefined;
};

/** Reads one object. `keys` returns the keys of the clusters in an unreadable one, so that each keeps its last good values. */
export function readObject<T extends { metadata: Metadata }>(
  schema: z.ZodType<T>,
  object: unknown,
  clusters: (value: T) => readonly ClusterItem[],
  keys: (uid: string, object: unknown) => readonly string[] = (uid) => [uid],
): readonly ClusterItem[] {
  const { value, reason } = readRow(schema, object);
  if (value !== undefined) return clusters(value);
  const { uid, where } = identityOf(object);
  return (uid === undefined ? [where] : keys(uid, object)).map((key) =>
    rejectedRow(key, `${where}: ${reason}`),
  );
}

/** Returns the readable identity of an object: its `uid`, and its place `where`, `namespace/name`. */
export function identityOf(object: unknown): { readonly uid: string | undefined; readonly where: string } {
  const { metadata } = z.object({ metadata: z.unknown() }).catch({ metadata: undefined }).parse(object);
  const [namespace = '?', name = '?'] = [labelIn(metadata, 'namespace'), labelIn(metadata, 'name')];
  return { uid: labelIn(metadata, 'uid'), where: `${namespace}/${name}` };
}

/** An annotation of the object has priority over its label, and its label over the node label that its pods require. */
export function namedBy(
  metadata: Metadata,
  naming: Naming,
  nodeSelector: z.infer<typeof Labels>,
  nodeAffinity: z.infer<typeof NodeAffinity>,
): Named {
  const own = (key: string) => metadata.annotations?.[key] ?? metadata.labels?.[key];
  const required = (key: string) => own(key) ?? requiredLabel(key, nodeSelector, nodeAffinity);
  const { organizationLabel } = naming;
  const tenant = organizationLabel === undefined ? metadata.namespace : metadata.labels?.[organizationLabel];
  if (tenant === undefined)
    return unusable(`metadata.labels lacks ${organizationLabel}, which must name the owner`, true);
  const found = {
    tenant,
    machineType: required(naming.instanceTypeLabel),
    region: required(naming.regionLabel),
    provider: own(naming.providerLabel),
    creator: own(naming.creatorLabel),
  };
  for (const [what, text] of Object.entries(found)) {
    if (text !== undefined && !label.safeParse(text).success)
      unusable(`the label with the ${what} must be text of 1 to 255 characters; it is not`);
  }
  const { region: code, creator, ...named } = found;
  const [firstName = '', ...others] = (creator ?? '').trim().split(/\s+/);
  return {
    ...named,
    region: code === undefined ? undefined : { code },
    user: creator === undefined ? undefined : { firstName, lastName: others.join(' ') },
  };
}

interface ClusterObject extends Pick<DescribedCluster, 'status' | 'shards' | 'replicas' | 'software'> {
  readonly metadata: Metadata;
  readonly nodes:
    | { nodeSelector?: z.infer<typeof Labels>; nodeAffinity?: z.infer<typeof NodeAffinity> }
    | null
    | undefined;
  readonly resources: z.infer<typeof Resources>;
  readonly disks: readonly DescribedDisk[];
}

export function oneCluster(
  { metadata, nodes, resources, ...described }: ClusterObject,
  naming: Naming,
): readonly ClusterItem[] {
  const { uid: key, name, namespace, creationTimestamp: createdAt } = metadata;
  const read = (): ClusterItem => {
    const found = namedBy(metadata, naming, nodes?.nodeSelector, nodes?.nodeAffinity);
    const { machineType, ...named } = found;
    const machine = machineOf(machineType, resources);
    return { kind: 'cluster', cluster: { ...named, ...described, key, name, machine, createdAt } };
  };
  return [orRejected(key, {}, read, `${namespace}/${name}: `)];
}
