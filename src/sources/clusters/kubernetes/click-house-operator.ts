/** What the resources of ClickHouse's own operator have in common: `api/v1alpha1` of ClickHouse/clickhouse-operator. */
import { z } from 'zod';
import type { DescribedDisk } from '../../../domain/cluster.ts';
import { countOrNone, label } from '../../schema/fields.ts';
import { rejectedRow } from '../../schema/rows.ts';
import type { ClusterItem } from '../../source.ts';
import { type Metadata, namedBy } from './metadata.ts';
import type { Naming } from './naming.ts';
import { demanded, Labels, machineOf, NodeAffinity, Resources } from './placement.ts';
import { diskSize, volumeSize } from './quantity.ts';

/** A PersistentVolumeClaimSpec. */
export const ClaimSpec = z
  .object({
    storageClassName: label.nullish(),
    resources: z.object({ requests: z.object({ storage: volumeSize }) }),
  })
  .transform(({ storageClassName: name, resources }): DescribedDisk => {
    return { type: name == null ? {} : { name }, ...diskSize(resources.requests.storage) };
  });

/** The fields of a `spec` that say on what the servers run. */
export const POD_FIELDS = {
  podTemplate: z
    .object({ nodeSelector: Labels, affinity: z.object({ nodeAffinity: NodeAffinity }).nullish() })
    .nullish(),
  containerTemplate: z.object({ resources: Resources }).nullish(),
};

export const Status = z
  .object({
    readyReplicas: countOrNone.nullish(),
    currentRevision: z.string().nullish(),
    conditions: z
      .array(z.object({ type: z.string(), status: z.string(), reason: label.nullish() }))
      .nullish(),
  })
  .nullish();

const Pods = z.object(POD_FIELDS);

interface Operated {
  readonly metadata: Metadata;
  readonly spec: z.infer<typeof Pods>;
  readonly status: z.infer<typeof Status>;
  readonly shards: number;
  /** Of each shard. */
  readonly replicas: number;
  /** Of one replica. */
  readonly disks: readonly DescribedDisk[];
}

/** The cluster in an object of this operator, or why it cannot be named. */
export function operatedCluster(
  { metadata, spec, status, shards, replicas, disks }: Operated,
  naming: Naming,
): readonly ClusterItem[] {
  const said = namedBy(metadata, naming, (nodeLabel) =>
    demanded(nodeLabel, spec.podTemplate?.nodeSelector, spec.podTemplate?.affinity?.nodeAffinity),
  );
  const { uid: key, name, namespace, creationTimestamp: createdAt } = metadata;
  if ('reason' in said) {
    const { reason, ...waits } = said;
    return [{ ...rejectedRow(key, `${namespace}/${name}: ${reason}`, {}), ...waits }];
  }
  const { machineType, ...named } = said.named;
  const machine = machineOf(machineType, spec.containerTemplate?.resources);
  const cluster = {
    ...named,
    key,
    name,
    status: statusOf(metadata, shards * replicas, status),
    shards,
    replicas,
    ...(machine === undefined ? {} : { machine }),
    disks,
    createdAt,
  };
  return [{ kind: 'cluster', cluster }];
}

function statusOf(metadata: Metadata, wanted: number, status: Operated['status']): string {
  if (metadata.deletionTimestamp != null) return 'Terminating';
  if (wanted === 0) return 'Stopped';
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status === 'True') return (status?.readyReplicas ?? 0) < wanted ? 'Degraded' : 'Active';
  // The operator names a revision once it has applied it to every replica.
  if ((status?.currentRevision ?? '') === '') return 'Creating';
  return ready?.reason ?? 'NotReady';
}
