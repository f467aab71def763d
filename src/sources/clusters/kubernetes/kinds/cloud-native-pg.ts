import { z } from 'zod';
import type { DescribedDisk } from '../../../../domain/cluster.ts';
import { softwareOf, softwareText, versionOfImage } from '../../../cluster-fields.ts';
import { count, countOrNone, invalid, label } from '../../../schema/fields.ts';
import type { ClusterKind } from '../kind.ts';
import { Conditions, Metadata, oneCluster, readObject } from '../metadata.ts';
import { Labels, NodeAffinity, Resources } from '../placement.ts';
import { diskSize, volumeSize } from '../quantity.ts';

const Storage = z
  .object({
    size: volumeSize.nullish(),
    storageClass: label.nullish(),
    pvcTemplate: z
      .object({
        storageClassName: label.nullish(),
        resources: z.object({ requests: z.object({ storage: volumeSize.nullish() }).nullish() }).nullish(),
      })
      .nullish(),
  })
  .transform(({ size, storageClass, pvcTemplate }, context): DescribedDisk => {
    const given = size ?? pvcTemplate?.resources?.requests?.storage;
    if (given == null) return invalid(context, 'must have a size', 'size');
    const name = storageClass ?? pvcTemplate?.storageClassName ?? undefined;
    return { type: { name }, ...diskSize(given) };
  });

const Major = count.nullish().catch(undefined);

const PgCluster = z.object({
  metadata: Metadata,
  spec: z.object({
    // The API server sets this default; another source of objects may not.
    instances: count.default(1),
    storage: Storage,
    walStorage: Storage.nullish(),
    tablespaces: z.array(z.object({ storage: Storage })).nullish(),
    resources: Resources,
    imageName: softwareText,
    imageCatalogRef: z.object({ major: Major }).nullish().catch(undefined),
    affinity: z.object({ nodeSelector: Labels, nodeAffinity: NodeAffinity }).nullish(),
  }),
  status: z
    .object({
      readyInstances: countOrNone.nullish(),
      currentPrimary: z.string().nullish(),
      conditions: Conditions,
      image: softwareText,
      /** Of the stored data. During an upgrade to another major version, its pods do not run that one yet. */
      pgDataImageInfo: z.object({ image: softwareText, majorVersion: Major }).nullish().catch(undefined),
    })
    .nullish(),
});
type PgCluster = z.infer<typeof PgCluster>;

export const kind: ClusterKind = {
  id: 'cloud-native-pg',
  apiVersion: 'postgresql.cnpg.io/v1',
  kind: 'Cluster',
  plural: 'clusters',
  notes: `| CloudNativePG \`Cluster\` | |
|---|---|
| \`shards\`, \`replicas\` | 1 and \`spec.instances\`, with the primary |
| \`status\` | \`Terminating\` once it is deleted; \`Stopped\` with the annotation \`cnpg.io/hibernation: "on"\` once the condition of that name is true, since the operator defers the hibernation of an unhealthy cluster; \`Fenced\` if all instances are; \`Creating\` until it had a primary; \`Active\` if the condition \`Ready\` is true and every instance is ready; \`Degraded\` if it is true and some are not; else the reason of the condition, e.g. \`ClusterIsNotReady\`. \`status.phase\` is prose and is not read |
| \`machine\` | \`spec.resources\` of one instance |
| \`disks\` | of one instance: \`spec.storage\`, \`spec.walStorage\`, \`spec.tablespaces\` |
| version | of PostgreSQL: the tag of \`status.pgDataImageInfo.image\`, \`status.image\` or \`spec.imageName\`, else the major version in \`status.pgDataImageInfo\` or \`spec.imageCatalogRef\`. An image with only a digest states none |`,

  read(object, naming) {
    return readObject(PgCluster, object, ({ metadata, spec, status }) => {
      const { instances: replicas, storage, walStorage, affinity: nodes, resources } = spec;
      const tablespaces = (spec.tablespaces ?? []).map((each) => each.storage);
      const disks = [storage, ...(walStorage == null ? [] : [walStorage]), ...tablespaces];
      const word = statusOf(metadata, replicas, status);
      const software = softwareOf({ engine: 'postgresql', version: versionOf(spec, status) });
      return oneCluster(
        { metadata, nodes, resources, status: word, shards: 1, replicas, disks, software },
        naming,
      );
    });
  },
};

/** The operator reads the version from an image's tag too, which must begin with it. */
function versionOf(spec: PgCluster['spec'], status: PgCluster['status']): string | undefined {
  const { pgDataImageInfo: data, image } = status ?? {};
  const tag = versionOfImage(data?.image) ?? versionOfImage(image) ?? versionOfImage(spec.imageName);
  return tag ?? (data?.majorVersion ?? spec.imageCatalogRef?.major)?.toString();
}

/** The name of an annotation, and of a condition that is true once no pod is left (pkg/reconciler/hibernation in the operator). */
const HIBERNATION = 'cnpg.io/hibernation';

function statusOf(metadata: Metadata, instances: number, status: PgCluster['status']): string {
  if (metadata.deletionTimestamp != null) return 'Terminating';
  const hibernated = status?.conditions?.find(({ type }) => type === HIBERNATION)?.status === 'True';
  if (hibernated && metadata.annotations?.[HIBERNATION] === 'on') return 'Stopped';
  if (allFenced(metadata.annotations?.['cnpg.io/fencedInstances'], instances)) return 'Fenced';
  if (status?.currentPrimary == null || status.currentPrimary === '') return 'Creating';
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  const readyInstances = status.readyInstances ?? 0;
  if (ready?.status !== 'True' || readyInstances === 0) {
    return ready?.status === 'True' ? 'ClusterIsNotReady' : (ready?.reason ?? 'ClusterIsNotReady');
  }
  return readyInstances < instances ? 'Degraded' : 'Active';
}

/** The annotation is a JSON list of instances' names, `["*"]` for all. */
function allFenced(annotation: string | undefined, instances: number): boolean {
  if (annotation === undefined) return false;
  let fenced: unknown;
  try {
    fenced = JSON.parse(annotation);
  } catch {
    return false;
  }
  return Array.isArray(fenced) && (fenced.includes('*') || new Set(fenced).size >= instances);
}
