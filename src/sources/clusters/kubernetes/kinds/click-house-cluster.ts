import { z } from 'zod';
import type { DescribedDisk } from '../../../../domain/cluster.ts';
import { countOrNone, label } from '../../../schema/fields.ts';
import { rejectedRow } from '../../../schema/rows.ts';
import type { ClusterItem } from '../../../source.ts';
import type { ClusterKind } from '../kind.ts';
import { Metadata, namedBy, readObject } from '../metadata.ts';
import { demanded, Labels, machineOf, NodeAffinity, Resources } from '../placement.ts';
import { diskSize, volumeSize } from '../quantity.ts';

const ClaimSpec = z
  .object({
    storageClassName: label.nullish(),
    resources: z.object({ requests: z.object({ storage: volumeSize }) }),
  })
  .transform(({ storageClassName: name, resources }): DescribedDisk => {
    return { type: name == null ? {} : { name }, ...diskSize(resources.requests.storage) };
  });

/** As in `api/v1alpha1/clickhousecluster_types.go` of ClickHouse/clickhouse-operator. */
const Cluster = z.object({
  metadata: Metadata,
  spec: z.object({
    // The API server fills these in; an object from elsewhere may lack them.
    replicas: countOrNone.default(3),
    shards: countOrNone.default(1),
    podTemplate: z
      .object({ nodeSelector: Labels, affinity: z.object({ nodeAffinity: NodeAffinity }).nullish() })
      .nullish(),
    containerTemplate: z.object({ resources: Resources }).nullish(),
    dataVolumeClaimSpec: ClaimSpec.nullish(),
    additionalDataVolumeClaimSpecs: z.array(z.object({ spec: ClaimSpec })).nullish(),
  }),
  status: z
    .object({
      readyReplicas: countOrNone.nullish(),
      currentRevision: z.string().nullish(),
      conditions: z
        .array(z.object({ type: z.string(), status: z.string(), reason: label.nullish() }))
        .nullish(),
    })
    .nullish(),
});
type Cluster = z.infer<typeof Cluster>;

/** ClickHouse clusters of ClickHouse's own operator. */
export const kind: ClusterKind = {
  id: 'click-house-cluster',
  apiVersion: 'clickhouse.com/v1alpha1',
  kind: 'ClickHouseCluster',
  plural: 'clickhouseclusters',
  notes: `| ClickHouse \`ClickHouseCluster\` | |
|---|---|
| \`shards\`, \`replicas\` | \`spec.shards\` and \`spec.replicas\`, which are those of each shard |
| \`status\` | \`Terminating\` once it is deleted; \`Stopped\` without shards or replicas; \`Active\` when the condition \`Ready\` holds and every replica is ready; \`Degraded\` when it holds and some are not; \`Creating\` until all of it stood once; else the reason why it does not hold, e.g. \`SomeShardsNotReady\` |
| \`machine\` | the resources in \`spec.containerTemplate\`. What the operator reserves where they are missing is not taken for a machine |
| \`disks\` | of one replica: \`spec.dataVolumeClaimSpec\` and \`spec.additionalDataVolumeClaimSpecs\` |`,

  read(object, naming) {
    return readObject(Cluster, object, ({ metadata, spec, status }): readonly ClusterItem[] => {
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
      const more = (spec.additionalDataVolumeClaimSpecs ?? []).map((each) => each.spec);
      const cluster = {
        ...named,
        key,
        name,
        status: statusOf(metadata, spec, status),
        shards: spec.shards,
        replicas: spec.replicas,
        ...(machine === undefined ? {} : { machine }),
        disks: [...(spec.dataVolumeClaimSpec == null ? [] : [spec.dataVolumeClaimSpec]), ...more],
        createdAt,
      };
      return [{ kind: 'cluster', cluster }];
    });
  },
};

function statusOf(
  metadata: Metadata,
  { shards, replicas }: Cluster['spec'],
  status: Cluster['status'],
): string {
  if (metadata.deletionTimestamp != null) return 'Terminating';
  const wanted = shards * replicas;
  if (wanted === 0) return 'Stopped';
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status === 'True') return (status?.readyReplicas ?? 0) < wanted ? 'Degraded' : 'Active';
  // The operator names a revision once it has applied it to every replica.
  if ((status?.currentRevision ?? '') === '') return 'Creating';
  return ready?.reason ?? 'NotReady';
}
