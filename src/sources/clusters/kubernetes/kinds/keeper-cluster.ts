import { readOperated } from '../click-house-operator.ts';
import type { ClusterKind } from '../kind.ts';

/** ClickHouse Keeper of ClickHouse's operator: the coordination service of its clusters, with further machines and disks. */
export const kind: ClusterKind = {
  id: 'keeper-cluster',
  apiVersion: 'clickhouse.com/v1alpha1',
  kind: 'KeeperCluster',
  plural: 'keeperclusters',
  onRequest: true,
  notes: `| ClickHouse \`KeeperCluster\` | |
|---|---|
| read | only if the option \`kinds\` names \`keeper-cluster\`: it coordinates ClickHouse clusters and has no user data |
| \`shards\`, \`replicas\` | 1 and \`spec.replicas\` |
| \`status\` | as for a \`ClickHouseCluster\`; the reason may be \`NoLeader\` or \`NotEnoughFollowers\` |
| \`machine\`, \`disks\` | as for a \`ClickHouseCluster\`; \`spec.dataVolumeClaimSpec\` is the only disk |
| version | as for a \`ClickHouseCluster\`; the engine is \`clickhouse-keeper\` |`,

  read: (object, naming) => readOperated('clickhouse-keeper', object, naming),
};
