import { z } from 'zod';
import type { DescribedDisk } from '../../../../domain/cluster.ts';
import { count, countOrNone, label } from '../../../schema/fields.ts';
import { rejectedRow } from '../../../schema/rows.ts';
import type { ClusterItem } from '../../../source.ts';
import type { ClusterKind } from '../kind.ts';
import { Metadata, namedBy, readObject } from '../metadata.ts';
import { demanded, Labels, machineOf, NodeAffinity, Resources } from '../placement.ts';
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
    if (given == null) {
      context.addIssue({ code: 'custom', message: 'must have a size', path: ['size'] });
      return z.NEVER;
    }
    const name = storageClass ?? pvcTemplate?.storageClassName;
    return { type: name == null ? {} : { name }, ...diskSize(given) };
  });

const PgCluster = z.object({
  metadata: Metadata,
  spec: z.object({
    // The API server fills it in; an object from elsewhere may lack it.
    instances: count.default(1),
    storage: Storage,
    walStorage: Storage.nullish(),
    tablespaces: z.array(z.object({ storage: Storage })).nullish(),
    resources: Resources,
    affinity: z.object({ nodeSelector: Labels, nodeAffinity: NodeAffinity }).nullish(),
  }),
  status: z
    .object({
      readyInstances: countOrNone.nullish(),
      currentPrimary: z.string().nullish(),
      conditions: z
        .array(z.object({ type: z.string(), status: z.string(), reason: label.nullish() }))
        .nullish(),
    })
    .nullish(),
});
type PgCluster = z.infer<typeof PgCluster>;

/** PostgreSQL clusters of the CloudNativePG operator. */
export const kind: ClusterKind = {
  id: 'cloud-native-pg',
  apiVersion: 'postgresql.cnpg.io/v1',
  kind: 'Cluster',
  plural: 'clusters',
  notes: `| CloudNativePG \`Cluster\` | |
|---|---|
| \`shards\`, \`replicas\` | 1 and \`spec.instances\`, the primary among them |
| \`status\` | \`Terminating\` once it is deleted; \`Stopped\` with the annotation \`cnpg.io/hibernation: "on"\`; \`Fenced\` when all instances are; \`Creating\` until it has had a primary; \`Active\` when the condition \`Ready\` holds and every instance is ready; \`Degraded\` when it holds and some are not; else the reason why it does not hold, e.g. \`ClusterIsNotReady\`. Never the prose of \`status.phase\` |
| \`machine\` | \`spec.resources\` of one instance |
| \`disks\` | of one instance: \`spec.storage\`, \`spec.walStorage\`, \`spec.tablespaces\` |`,

  read(object, naming) {
    return readObject(PgCluster, object, ({ metadata, spec, status }): readonly ClusterItem[] => {
      const said = namedBy(metadata, naming, (nodeLabel) =>
        demanded(nodeLabel, spec.affinity?.nodeSelector, spec.affinity?.nodeAffinity),
      );
      const { uid: key, name, namespace, creationTimestamp: createdAt } = metadata;
      if ('reason' in said) {
        const { reason, ...waits } = said;
        return [{ ...rejectedRow(key, `${namespace}/${name}: ${reason}`, {}), ...waits }];
      }
      const { machineType, ...named } = said.named;
      const machine = machineOf(machineType, spec.resources);
      const tablespaces = (spec.tablespaces ?? []).map(({ storage }) => storage);
      const cluster = {
        ...named,
        key,
        name,
        status: statusOf(metadata, spec.instances, status),
        shards: 1,
        replicas: spec.instances,
        ...(machine === undefined ? {} : { machine }),
        disks: [spec.storage, ...(spec.walStorage == null ? [] : [spec.walStorage]), ...tablespaces],
        createdAt,
      };
      return [{ kind: 'cluster', cluster }];
    });
  },
};

function statusOf(metadata: Metadata, instances: number, status: PgCluster['status']): string {
  if (metadata.deletionTimestamp != null) return 'Terminating';
  if (metadata.annotations?.['cnpg.io/hibernation'] === 'on') return 'Stopped';
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
