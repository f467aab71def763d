import { z } from 'zod';
import type { DescribedCluster } from '../../../domain/cluster.ts';
import { instant } from '../../cluster-fields.ts';
import { label } from '../../schema/fields.ts';
import { labelIn, readRow, rejectedRow } from '../../schema/rows.ts';
import type { ClusterItem } from '../../source.ts';
import type { Naming } from './naming.ts';
import { Labels } from './placement.ts';

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

/** What an object's labels and annotations say of each of its clusters. */
type Named = Pick<DescribedCluster, 'tenant' | 'provider' | 'region' | 'user'> & {
  readonly machineType: string | undefined;
};

/** @param nodeLabel the value of a node label that the object's pods are bound to */
export type ReadLabel = (nodeLabel: string) => string | undefined;

/**
 * Reads one object: its parts by the schema, then what its labels say, then its clusters.
 * @param clusters gives the clusters, each with its key; one without a uid or a readable part never comes so far
 * @param keys the keys of the clusters in an object that cannot be read, so that each keeps its last good values
 */
export function readObject<T extends { metadata: Metadata }>(
  schema: z.ZodType<T>,
  object: unknown,
  clusters: (value: T) => readonly ClusterItem[],
  keys: (uid: string, object: unknown) => readonly string[] = (uid) => [uid],
): readonly ClusterItem[] {
  const { value, reason } = readRow(schema, object);
  if (value !== undefined) return clusters(value);
  const { uid, where } = identityOf(object);
  const said = `${where}: ${reason}`;
  return (uid === undefined ? [where] : keys(uid, object)).map((key) => rejectedRow(key, said, {}));
}

/**
 * What tells an object from every other, as far as that can be read.
 * @returns `uid`, and `where` it stands: `namespace/name`
 */
export function identityOf(object: unknown): { readonly uid: string | undefined; readonly where: string } {
  const { metadata } = z.object({ metadata: z.unknown() }).catch({ metadata: undefined }).parse(object);
  const [namespace = '?', name = '?'] = [labelIn(metadata, 'namespace'), labelIn(metadata, 'name')];
  return { uid: labelIn(metadata, 'uid'), where: `${namespace}/${name}` };
}

/**
 * An annotation of the object goes before a label, and that before what its pods demand of their nodes.
 * @returns what is said, or the reason why it cannot be used
 */
export function namedBy(
  metadata: Metadata,
  naming: Naming,
  demandedOfNodes: ReadLabel,
): { readonly named: Named } | { readonly reason: string; readonly waits?: true } {
  const own = (key: string) => metadata.annotations?.[key] ?? metadata.labels?.[key];
  const { organizationLabel } = naming;
  const tenant = organizationLabel === undefined ? metadata.namespace : metadata.labels?.[organizationLabel];
  if (tenant === undefined)
    return { reason: `metadata.labels lacks ${organizationLabel}, which must say whose it is`, waits: true };
  const found = {
    tenant,
    machineType: own(naming.instanceTypeLabel) ?? demandedOfNodes(naming.instanceTypeLabel),
    region: own(naming.regionLabel) ?? demandedOfNodes(naming.regionLabel),
    provider: own(naming.providerLabel),
    creator: own(naming.creatorLabel),
  };
  for (const [what, text] of Object.entries(found)) {
    if (text !== undefined && !label.safeParse(text).success)
      return { reason: `the label that says ${what} must be text of 1 to 255 characters; it is not` };
  }
  const { machineType, region, provider, creator } = found;
  return {
    named: {
      tenant,
      machineType,
      ...(region === undefined ? {} : { region: { code: region } }),
      ...(provider === undefined ? {} : { provider }),
      ...(creator === undefined ? {} : { user: personOf(creator) }),
    },
  };
}

function personOf(text: string): { readonly firstName: string; readonly lastName: string } {
  const [firstName = '', ...others] = text.trim().split(/\s+/);
  return { firstName, lastName: others.join(' ') };
}
