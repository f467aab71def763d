import { readOperated } from '../click-house-operator.ts';
import type { ClusterKind } from '../kind.ts';

export const kind: ClusterKind = {
  id: 'click-house-cluster',
  apiVersion: 'clickhouse.com/v1alpha1',
  kind: 'ClickHouseCluster',
  plural: 'clickhouseclusters',
  notes: `| ClickHouse \`ClickHouseCluster\` | |
|---|---|
| \`shards\`, \`replicas\` | \`spec.shards\`, and \`spec.replicas\` of each shard |
| \`status\` | \`Terminating\` once it is deleted; \`Stopped\` without shards or replicas; \`Active\` if the condition \`Ready\` is true and every replica is ready; \`Degraded\` if it is true and some are not; \`Creating\` until every replica was ready once; else the reason of the condition, e.g. \`SomeShardsNotReady\` |
| \`machine\` | the resources in \`spec.containerTemplate\`. The operator's defaults are not read as a machine |
| \`disks\` | of one replica: \`spec.dataVolumeClaimSpec\` and \`spec.additionalDataVolumeClaimSpecs\` |
| version | the tag of \`spec.containerTemplate.image\`; \`latest\` and the operator's default are unknown |`,

  read: (object, naming) => readOperated('clickhouse', object, naming),
};
