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
    // The API server sets these defaults; another source of objects may not.
    replicas: countOrNone.default(3),
    shards: countOrNone.default(1),
    dataVolumeClaimSpec: VolumeClaim.nullish(),
    additionalDataVolumeClaimSpecs: z.array(z.object({ spec: VolumeClaim })).nullish(),
  }),
  status: Status,
});

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
