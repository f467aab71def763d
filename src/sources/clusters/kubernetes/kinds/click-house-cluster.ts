import { z } from 'zod';
import { countOrNone } from '../../../schema/fields.ts';
import { ClaimSpec, operatedCluster, POD_FIELDS, Status } from '../click-house-operator.ts';
import type { ClusterKind } from '../kind.ts';
import { Metadata, readObject } from '../metadata.ts';

/** As in `clickhousecluster_types.go`. */
const Cluster = z.object({
  metadata: Metadata,
  spec: z.object({
    ...POD_FIELDS,
    // The API server fills these in; an object from elsewhere may lack them.
    replicas: countOrNone.default(3),
    shards: countOrNone.default(1),
    dataVolumeClaimSpec: ClaimSpec.nullish(),
    additionalDataVolumeClaimSpecs: z.array(z.object({ spec: ClaimSpec })).nullish(),
  }),
  status: Status,
});

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
    return readObject(Cluster, object, ({ metadata, spec, status }) => {
      const { shards, replicas, dataVolumeClaimSpec: data } = spec;
      const more = (spec.additionalDataVolumeClaimSpecs ?? []).map((each) => each.spec);
      const disks = [...(data == null ? [] : [data]), ...more];
      return operatedCluster({ metadata, spec, status, shards, replicas, disks }, naming);
    });
  },
};
