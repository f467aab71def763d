import { z } from 'zod';
import type { DescribedCluster, DescribedDisk } from '../../../../domain/cluster.ts';
import { countOrNone, label } from '../../../fields.ts';
import { labelIn, rejectedRow } from '../../../rows.ts';
import type { ClusterItem } from '../../../source.ts';
import type { ClusterKind } from '../kind.ts';
import { Metadata, namedBy, readObject } from '../metadata.ts';
import type { Naming } from '../naming.ts';
import { demanded, Labels, machineOf, NodeAffinity, Resources } from '../placement.ts';
import { diskSize, volumeSize } from '../quantity.ts';

const TemplateNames = z
  .object({
    podTemplate: z.string().nullish(),
    dataVolumeClaimTemplate: z.string().nullish(),
    logVolumeClaimTemplate: z.string().nullish(),
    /** What older manifests call the data's. */
    volumeClaimTemplate: z.string().nullish(),
  })
  .nullish();

const Counts = { shardsCount: countOrNone.nullish(), replicasCount: countOrNone.nullish() };

const Layout = z
  .object({
    ...Counts,
    shards: z.array(z.object({ ...Counts, replicas: z.array(z.unknown()).nullish() })).nullish(),
    replicas: z.array(z.object({ ...Counts, shards: z.array(z.unknown()).nullish() })).nullish(),
  })
  .nullish();

const PodTemplate = z.object({
  name: z.string(),
  spec: z
    .object({
      nodeSelector: Labels,
      affinity: z.object({ nodeAffinity: NodeAffinity }).nullish(),
      containers: z
        .array(
          z.object({
            name: z.string().nullish(),
            resources: Resources,
            volumeMounts: z.array(z.object({ name: z.string() })).nullish(),
          }),
        )
        .nullish(),
    })
    .nullish(),
});
type PodTemplate = z.infer<typeof PodTemplate>;

const VolumeClaimTemplate = z.object({
  name: z.string(),
  spec: z.object({
    storageClassName: label.nullish(),
    resources: z.object({ requests: z.object({ storage: volumeSize }) }),
  }),
});

const ChCluster = z.object({ name: label, templates: TemplateNames, layout: Layout });

const Installation = z.object({
  metadata: Metadata,
  spec: z.object({
    stop: z.union([z.string(), z.boolean(), z.number()]).nullish(),
    useTemplates: z.array(z.unknown()).nullish(),
    defaults: z.object({ templates: TemplateNames }).nullish(),
    configuration: z.object({ clusters: z.array(ChCluster).nullish() }).nullish(),
    templates: z
      .object({
        podTemplates: z.array(PodTemplate).nullish(),
        volumeClaimTemplates: z.array(VolumeClaimTemplate).nullish(),
      })
      .nullish(),
  }),
  status: z
    .object({
      status: z.union([z.literal(''), label]).nullish(),
      taskIDsCompleted: z.array(z.unknown()).nullish(),
      normalizedCompleted: z.unknown().optional(),
    })
    .nullish(),
});
type Installation = z.infer<typeof Installation>;
type ChCluster = z.infer<typeof ChCluster>;

/** What the operator makes of an installation that names no cluster. */
const UNNAMED: ChCluster = { name: 'cluster' };

/** ClickHouse clusters of Altinity's operator; one object may hold several. */
export const kind: ClusterKind = {
  id: 'click-house-installation',
  apiVersion: 'clickhouse.altinity.com/v1',
  kind: 'ClickHouseInstallation',
  plural: 'clickhouseinstallations',
  notes: `| Altinity \`ClickHouseInstallation\` | |
|---|---|
| clusters | each of \`spec.configuration.clusters\`; where there are several, they are named \`installation/cluster\` |
| \`shards\`, \`replicas\` | from \`layout\`: the counts, or as many as are listed if those are more; what is omitted is 1; of uneven shards the most replicas |
| \`status\` | \`Terminating\` once it is deleted; \`Stopped\` with \`spec.stop\`; \`Creating\` until it was reconciled for the first time; \`Active\` for \`Completed\`; else the operator's word, e.g. \`InProgress\`, \`Aborted\` |
| \`machine\` | the resources of the \`clickhouse\` container (else the first) in the pod template |
| \`disks\` | of one host: the volume claim templates that the cluster's or the default templates name, or that the container mounts. Templates that lie outside the object (\`useTemplates\`) are not read |`,

  read(object, naming) {
    return readObject(Installation, object, (value) => clustersOf(value, naming), keysIn);
  },
};

function clustersOf(installation: Installation, naming: Naming): readonly ClusterItem[] {
  const { metadata, spec } = installation;
  const named = spec.configuration?.clusters ?? [];
  const clusters = named.length === 0 ? [UNNAMED] : named;
  return clusters.map((cluster): ClusterItem => {
    const { name } = cluster;
    const key = `${metadata.uid}/${name}`;
    const rejected = (reason: string) =>
      rejectedRow(key, `${metadata.namespace}/${metadata.name}, cluster ${name}: ${reason}`, {});
    if (clusters.filter((other) => other.name === name).length > 1)
      return rejected('another cluster of the installation has the same name');
    const pod = podTemplateOf(installation, cluster);
    const said = namedBy(metadata, naming, (nodeLabel) =>
      demanded(nodeLabel, pod?.spec?.nodeSelector, pod?.spec?.affinity?.nodeAffinity),
    );
    if ('reason' in said) {
      const { reason, ...waits } = said;
      return { ...rejected(reason), ...waits };
    }
    const { machineType, ...labels } = said.named;
    const machine = machineOf(machineType, containerOf(pod)?.resources);
    const disks = disksOf(installation, cluster, pod);
    const described: DescribedCluster = {
      ...labels,
      key,
      name: clusters.length === 1 ? metadata.name : `${metadata.name}/${name}`,
      status: statusOf(installation),
      ...shapeOf(cluster.layout),
      ...(machine === undefined ? {} : { machine }),
      ...(disks === undefined ? {} : { disks }),
      createdAt: metadata.creationTimestamp,
    };
    return { kind: 'cluster', cluster: described };
  });
}

/** `.status.replicas` is not looked at: the operator leaves it 0. */
function shapeOf(layout: z.infer<typeof Layout>): { readonly shards: number; readonly replicas: number } {
  const shards = layout?.shards ?? [];
  // As the operator does: replicas are only looked at where no shards are listed.
  const replicas = shards.length > 0 ? [] : (layout?.replicas ?? []);
  return {
    shards: Math.max(
      1,
      layout?.shardsCount ?? 0,
      shards.length,
      ...replicas.map((replica) => Math.max(replica.shardsCount ?? 0, replica.shards?.length ?? 0)),
    ),
    replicas: Math.max(
      1,
      layout?.replicasCount ?? 0,
      replicas.length,
      ...shards.map((shard) => Math.max(shard.replicasCount ?? 0, shard.replicas?.length ?? 0)),
    ),
  };
}

function statusOf({ metadata, spec, status }: Installation): string {
  if (metadata.deletionTimestamp != null) return 'Terminating';
  const said = status?.status ?? '';
  if (said === 'Terminating' || said === 'Aborted') return said;
  // Everything that the operator takes for true.
  if (/^(1|y|yes|t|true|on|enabled?)$/i.test(String(spec.stop ?? ''))) return 'Stopped';
  if (said === 'Completed') return 'Active';
  const completed = (status?.taskIDsCompleted?.length ?? 0) > 0 || status?.normalizedCompleted != null;
  return said === '' || (said === 'InProgress' && !completed) ? 'Creating' : said;
}

function podTemplateOf({ spec }: Installation, cluster: ChCluster): PodTemplate | undefined {
  const wanted = cluster.templates?.podTemplate ?? spec.defaults?.templates?.podTemplate;
  return spec.templates?.podTemplates?.find(({ name }) => name === wanted);
}

function containerOf(pod: PodTemplate | undefined) {
  const containers = pod?.spec?.containers ?? [];
  return containers.find(({ name }) => name === 'clickhouse') ?? containers[0];
}

/** Undefined where the object does not say: a template that lies elsewhere may. */
function disksOf(
  { spec }: Installation,
  { templates }: ChCluster,
  pod: PodTemplate | undefined,
): readonly DescribedDisk[] | undefined {
  const [own, usual] = [templates, spec.defaults?.templates];
  const data = own?.dataVolumeClaimTemplate ?? own?.volumeClaimTemplate;
  const usualData = usual?.dataVolumeClaimTemplate ?? usual?.volumeClaimTemplate;
  const log = own?.logVolumeClaimTemplate ?? usual?.logVolumeClaimTemplate;
  const claims = new Map((spec.templates?.volumeClaimTemplates ?? []).map((claim) => [claim.name, claim]));
  // A mount may also be of a volume that is no claim, such as a ConfigMap.
  const mounted = (containerOf(pod)?.volumeMounts ?? [])
    .map(({ name }) => name)
    .filter((name) => claims.has(name));
  const wanted = new Set([data ?? usualData, log, ...mounted].filter((name) => name != null));
  const found = [...wanted].map((name) => claims.get(name));
  if (found.includes(undefined) || (found.length === 0 && (spec.useTemplates ?? []).length > 0))
    return undefined;
  return found
    .filter((claim) => claim !== undefined)
    .map(({ spec: claim }) => {
      const type = claim.storageClassName == null ? {} : { name: claim.storageClassName };
      return { type, ...diskSize(claim.resources.requests.storage) };
    });
}

/** The keys of the clusters in an object that cannot be read as a whole. */
function keysIn(uid: string, object: unknown): readonly string[] {
  const lenient = z.object({
    spec: z.object({ configuration: z.object({ clusters: z.array(z.unknown()) }) }),
  });
  const clusters = lenient.safeParse(object).data?.spec.configuration.clusters ?? [UNNAMED];
  const names = clusters.map((cluster) => labelIn(cluster, 'name')).filter((name) => name !== undefined);
  return names.length === 0 ? [uid] : [...new Set(names)].map((name) => `${uid}/${name}`);
}
