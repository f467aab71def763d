/** Common parts of the resources of ClickHouse's operator: `api/v1alpha1` in ClickHouse/clickhouse-operator. */
import { z } from 'zod';
import type { Engine } from '../../../domain/engine.ts';
import { softwareOf, softwareText, versionOfTag } from '../../cluster-fields.ts';
import { countOrNone } from '../../schema/fields.ts';
import type { ClusterItem } from '../../source.ts';
import type { Naming } from './kind.ts';
import { Conditions, Metadata, oneCluster, readObject } from './metadata.ts';
import { Labels, NodeAffinity, Resources, VolumeClaim } from './placement.ts';

const Operated = z.object({
  metadata: Metadata,
  spec: z.object({
    podTemplate: z
      .object({ nodeSelector: Labels, affinity: z.object({ nodeAffinity: NodeAffinity }).nullish() })
      .nullish(),
    containerTemplate: z
      .object({
        resources: Resources,
        image: z.object({ tag: softwareText }).nullish().catch(undefined),
      })
      .nullish(),
    // The API server sets these defaults; another source of objects may not.
    replicas: countOrNone.default(3),
    shards: countOrNone.default(1),
    dataVolumeClaimSpec: VolumeClaim.nullish(),
    additionalDataVolumeClaimSpecs: z.array(z.object({ spec: VolumeClaim })).nullish(),
  }),
  status: z
    .object({
      readyReplicas: countOrNone.nullish(),
      currentRevision: z.string().nullish(),
      conditions: Conditions,
    })
    .nullish(),
});

/** Reads a ClickHouseCluster, or a KeeperCluster, which has no shards and one disk. */
export function readOperated(engine: Engine, object: unknown, naming: Naming): readonly ClusterItem[] {
  return readObject(Operated, object, ({ metadata, spec, status: state }) => {
    // `replicas` are those of each shard, `disks` those of one replica.
    const { podTemplate: pod, containerTemplate, shards, replicas, dataVolumeClaimSpec: data } = spec;
    const nodes = { nodeSelector: pod?.nodeSelector, nodeAffinity: pod?.affinity?.nodeAffinity };
    const more = (spec.additionalDataVolumeClaimSpecs ?? []).map((each) => each.spec);
    const disks = [...(data == null ? [] : [data]), ...more];
    const status = statusOf(metadata, shards * replicas, state);
    const { resources, image } = containerTemplate ?? {};
    const software = softwareOf({ engine, version: versionOfTag(image?.tag) });
    return oneCluster({ metadata, nodes, resources, status, shards, replicas, disks, software }, naming);
  });
}

function statusOf(metadata: Metadata, wanted: number, status: z.infer<typeof Operated>['status']): string {
  if (metadata.deletionTimestamp != null) return 'Terminating';
  if (wanted === 0) return 'Stopped';
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status === 'True') return (status?.readyReplicas ?? 0) < wanted ? 'Degraded' : 'Active';
  // The operator names a revision after it has applied it to every replica.
  if ((status?.currentRevision ?? '') === '') return 'Creating';
  return ready?.reason ?? 'NotReady';
}
