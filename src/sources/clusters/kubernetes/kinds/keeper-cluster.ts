import { z } from 'zod';
import { countOrNone } from '../../../schema/fields.ts';
import { operatedCluster, POD_FIELDS, Status } from '../click-house-operator.ts';
import type { ClusterKind } from '../kind.ts';
import { Metadata, readObject } from '../metadata.ts';
import { VolumeClaim } from '../placement.ts';

const Cluster = z.object({
  metadata: Metadata,
  spec: z.object({
    ...POD_FIELDS,
    // The API server sets this default; another source of objects may not.
    replicas: countOrNone.default(3),
    dataVolumeClaimSpec: VolumeClaim.nullish(),
  }),
  status: Status,
});

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
| \`machine\`, \`disks\` | as for a \`ClickHouseCluster\`; \`spec.dataVolumeClaimSpec\` is the only disk |`,

  read(object, naming) {
    return readObject(Cluster, object, ({ metadata, spec, status }) => {
      const { replicas, dataVolumeClaimSpec: data } = spec;
      const disks = data == null ? [] : [data];
      return operatedCluster({ metadata, spec, status, shards: 1, replicas, disks }, naming);
    });
  },
};
