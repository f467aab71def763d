import { z } from 'zod';
import { countOrNone } from '../../../schema/fields.ts';
import { ClaimSpec, operatedCluster, POD_FIELDS, Status } from '../click-house-operator.ts';
import type { ClusterKind } from '../kind.ts';
import { Metadata, readObject } from '../metadata.ts';

/** As in `keepercluster_types.go`. */
const Cluster = z.object({
  metadata: Metadata,
  spec: z.object({
    ...POD_FIELDS,
    // The API server fills it in; an object from elsewhere may lack it.
    replicas: countOrNone.default(3),
    dataVolumeClaimSpec: ClaimSpec.nullish(),
  }),
  status: Status,
});

/** ClickHouse Keeper of ClickHouse's own operator: what its clusters agree through, with machines and disks of its own. */
export const kind: ClusterKind = {
  id: 'keeper-cluster',
  apiVersion: 'clickhouse.com/v1alpha1',
  kind: 'KeeperCluster',
  plural: 'keeperclusters',
  onRequest: true,
  notes: `| ClickHouse \`KeeperCluster\` | |
|---|---|
| read | only where the option \`kinds\` names \`keeper-cluster\`: it holds what ClickHouse clusters agree on, and no data of anybody |
| \`shards\`, \`replicas\` | 1 and \`spec.replicas\` |
| \`status\` | as that of a \`ClickHouseCluster\`; the reason may be \`NoLeader\` or \`NotEnoughFollowers\` |
| \`machine\`, \`disks\` | as those of a \`ClickHouseCluster\`; \`spec.dataVolumeClaimSpec\` is the only disk |`,

  read(object, naming) {
    return readObject(Cluster, object, ({ metadata, spec, status }) => {
      const { replicas, dataVolumeClaimSpec: data } = spec;
      const disks = data == null ? [] : [data];
      return operatedCluster({ metadata, spec, status, shards: 1, replicas, disks }, naming);
    });
  },
};
