/** Common parts of the resources of ClickHouse's operator: `api/v1alpha1` in ClickHouse/clickhouse-operator. */
import { z } from 'zod';
import type { DescribedCluster } from '../../../domain/cluster.ts';
import { countOrNone, label } from '../../schema/fields.ts';
import type { ClusterItem } from '../../source.ts';
import type { Naming } from './kind.ts';
import { type Metadata, oneCluster } from './metadata.ts';
import { Labels, NodeAffinity, Resources } from './placement.ts';

export const POD_FIELDS = {
  podTemplate: z
    .object({ nodeSelector: Labels, affinity: z.object({ nodeAffinity: NodeAffinity }).nullish() })
    .nullish(),
  containerTemplate: z.object({ resources: Resources }).nullish(),
};

export const Conditions = z
  .array(z.object({ type: z.string(), status: z.string(), reason: label.nullish() }))
  .nullish();

export const Status = z
  .object({
    readyReplicas: countOrNone.nullish(),
    currentRevision: z.string().nullish(),
    conditions: Conditions,
  })
  .nullish();

const Pods = z.object(POD_FIELDS);

/** `replicas` are those of each shard, `disks` those of one replica. */
interface Operated extends Pick<DescribedCluster, 'shards' | 'replicas'> {
  readonly metadata: Metadata;
  readonly spec: z.infer<typeof Pods>;
  readonly status: z.infer<typeof Status>;
  readonly disks: NonNullable<DescribedCluster['disks']>;
}

export function operatedCluster(
  { metadata, spec, status, ...described }: Operated,
  naming: Naming,
): readonly ClusterItem[] {
  const { podTemplate: pod, containerTemplate } = spec;
  const wanted = described.shards * described.replicas;
  return oneCluster(
    {
      ...described,
      metadata,
      nodes: { nodeSelector: pod?.nodeSelector, nodeAffinity: pod?.affinity?.nodeAffinity },
      resources: containerTemplate?.resources,
      status: statusOf(metadata, wanted, status),
    },
    naming,
  );
}

function statusOf(metadata: Metadata, wanted: number, status: Operated['status']): string {
  if (metadata.deletionTimestamp != null) return 'Terminating';
  if (wanted === 0) return 'Stopped';
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status === 'True') return (status?.readyReplicas ?? 0) < wanted ? 'Degraded' : 'Active';
  // The operator names a revision after it has applied it to every replica.
  if ((status?.currentRevision ?? '') === '') return 'Creating';
  return ready?.reason ?? 'NotReady';
}
