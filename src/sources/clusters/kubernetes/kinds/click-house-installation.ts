import { z } from 'zod';
import type { DescribedCluster, DescribedDisk } from '../../../../domain/cluster.ts';
import { label } from '../../../schema/fields.ts';
import { labelIn, readRow, rejectedRow } from '../../../schema/rows.ts';
import type { ClusterItem } from '../../../source.ts';
import { ChCluster, hostsOf, shapeOf, TemplateNames } from '../altinity-hosts.ts';
import { templatesOf, withTemplates } from '../altinity-templates.ts';
import type { ClusterKind } from '../kind.ts';
import { identityOf, Metadata, namedBy, readObject } from '../metadata.ts';
import type { Naming } from '../naming.ts';
import { demanded, Labels, machineOf, NodeAffinity, Resources } from '../placement.ts';
import { diskSize, volumeSize } from '../quantity.ts';

/** What the operator makes of an installation that names no cluster. */
const UNNAMED: ChCluster = { name: 'cluster' };

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

/** Drops templates without a name: nothing can refer to them, and the operator ignores them. */
function named<T extends z.ZodType>(schema: T) {
  return z
    .array(z.unknown())
    .transform((all) => all.filter(isNamed))
    .pipe(z.array(schema))
    .nullish();
}

const isNamed = (each: unknown) => z.object({ name: z.string().min(1) }).safeParse(each).success;

/** Of clusters without a name the first counts, where no other has one. */
const Clusters = z
  .array(z.unknown())
  .transform((all) => {
    const those = all.filter(isNamed);
    return those.length > 0 ? those : all.slice(0, 1).map((one) => ({ ...Object(one), ...UNNAMED }));
  })
  .pipe(z.array(ChCluster))
  .nullish();

/** The part of `ChiSpec` that says of what a cluster's hosts are made. */
const Spec = z.object({
  stop: z.union([z.string(), z.boolean(), z.number()]).nullish(),
  defaults: z.object({ templates: TemplateNames }).nullish(),
  configuration: z.object({ clusters: Clusters }).nullish(),
  templates: z
    .object({
      hostTemplates: named(
        z.object({ name: z.string(), spec: z.object({ templates: TemplateNames }).nullish() }),
      ),
      podTemplates: named(PodTemplate),
      /** Only those that a host uses have to be whole. */
      volumeClaimTemplates: named(z.looseObject({ name: z.string() })),
    })
    .nullish(),
});
type Spec = z.infer<typeof Spec>;

const Status = z
  .object({
    status: z.union([z.literal(''), label]).nullish(),
    taskIDsCompleted: z.array(z.unknown()).nullish(),
    normalizedCompleted: z.unknown().optional(),
  })
  .nullish();

const Installation = z.object({
  metadata: Metadata,
  spec: Spec,
  status: Status,
});
type Installation = z.infer<typeof Installation>;

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
| \`machine\` | the resources of the \`clickhouse\` container (else the first) in the pod template of a host |
| \`disks\` | of one host: the volume claim templates that are named for it, or that its containers mount |
| templates | as the operator resolves them: a host's own, else its shard's (its replica's where only replicas are listed), else the cluster's, else \`spec.defaults\`; \`status.normalizedCompleted\` goes before all of that where the operator leaves it. Where hosts of one cluster differ, machine and disks are those that most of them have, of equally many those of the first. The ClickHouseInstallationTemplates that it uses (\`spec.useTemplates\`, and \`status.usedTemplates\` for those that apply by themselves) fill in what it does not say; it waits in quarantine where one of them cannot be read |`,

  refersTo: ['clickhouseinstallationtemplates'],

  read(object, naming) {
    const needs = templatesOf(object);
    const read = (whole: unknown) =>
      readObject(Installation, whole, (value) => clustersOf(value, naming), keysIn);
    if (needs.length === 0 || isCompleted(object)) return read(object);
    return {
      needs,
      object: essence(object),
      read(found) {
        for (const [index, one] of found.entries()) {
          if ('missing' in one) return waiting(object, `its ${needs[index]?.what} ${one.missing}`);
        }
        return read(
          withTemplates(
            object,
            found.map((one) => ('object' in one ? one.object : undefined)),
          ),
        );
      },
    };
  },
};

/** Without what changes all the time and is not read. */
function essence(object: unknown): unknown {
  const { metadata, spec, status } = z
    .object({ metadata: z.unknown(), spec: z.unknown(), status: z.unknown() })
    .catch({ metadata: undefined, spec: undefined, status: undefined })
    .parse(object);
  const [readMetadata, readStatus] = [Metadata.safeParse(metadata), Status.safeParse(status)];
  return { metadata: readMetadata.data ?? metadata, spec, status: readStatus.data ?? status };
}

/** Every cluster of an object that lacks something that somebody has yet to make or to allow. */
function waiting(object: unknown, reason: string): readonly ClusterItem[] {
  const { uid, where } = identityOf(object);
  return (uid === undefined ? [where] : keysIn(uid, object)).map((key) => ({
    ...rejectedRow(key, `${where}: ${reason}`, {}),
    waits: true,
  }));
}

function clustersOf(installation: Installation, naming: Naming): readonly ClusterItem[] {
  const { metadata, spec } = installation;
  const named = spec.configuration?.clusters ?? [];
  const clusters = named.length === 0 ? [UNNAMED] : named;
  const completed = completedSpec(installation);
  return clusters.map((cluster): ClusterItem => {
    const { name } = cluster;
    const key = `${metadata.uid}/${name}`;
    const rejected = (reason: string) =>
      rejectedRow(key, `${metadata.namespace}/${metadata.name}, cluster ${name}: ${reason}`, {});
    if (clusters.filter((other) => other.name === name).length > 1)
      return rejected('another cluster of the installation has the same name');
    const resolved = completed?.configuration?.clusters?.find((other) => other.name === name);
    const { said, machine, disks } =
      completed === undefined || resolved === undefined
        ? typicalHost(metadata, naming, cluster, spec)
        : typicalHost(metadata, naming, resolved, completed);
    if ('reason' in said) {
      const { reason, ...waits } = said;
      return { ...rejected(reason), ...waits };
    }
    const { machineType: _, ...labels } = said.named;
    const described: DescribedCluster = {
      ...labels,
      key,
      name: clusters.length === 1 ? metadata.name : `${metadata.name}/${name}`,
      status: statusOf(installation),
      ...shapeOf(cluster),
      ...(machine === undefined ? {} : { machine }),
      ...(disks === undefined ? {} : { disks }),
      createdAt: metadata.creationTimestamp,
    };
    return { kind: 'cluster', cluster: described };
  });
}

/**
 * What the operator made of the object when it last completed it, every template in its place. Absent before that, and
 * where a newer operator keeps it in a ConfigMap of its own.
 */
function completedSpec({ status }: Installation): Spec | undefined {
  return z.object({ spec: Spec }).safeParse(status?.normalizedCompleted).data?.spec;
}

/** Whether every cluster's templates are resolved already. */
function isCompleted(object: unknown): boolean {
  const { data } = Installation.safeParse(object);
  const completed = data && completedSpec(data)?.configuration?.clusters;
  if (completed == null) return false;
  const known = completed.map(({ name }) => name);
  const named = data?.spec.configuration?.clusters ?? [];
  return (named.length === 0 ? [UNNAMED] : named).every(({ name }) => known.includes(name));
}

/** What is described of a cluster's hosts; where they differ, of as many of them as possible. */
function typicalHost(metadata: Metadata, naming: Naming, cluster: ChCluster, spec: Spec) {
  const hostTemplates = new Map(
    (spec.templates?.hostTemplates ?? []).map((template) => [template.name, template.spec?.templates]),
  );
  const described = hostsOf(cluster, spec.defaults?.templates, hostTemplates).map(({ templates, count }) => ({
    host: describedHost(metadata, naming, spec, templates),
    count,
  }));
  const counts = new Map<string, number>();
  for (const { host, count } of described) {
    const alike = JSON.stringify(host);
    counts.set(alike, count + (counts.get(alike) ?? 0));
  }
  const most = Math.max(...counts.values());
  const [typical] = [...counts].find(([, count]) => count === most) ?? [];
  const found = described.find(({ host }) => JSON.stringify(host) === typical);
  if (found === undefined) throw new Error('unreachable: a cluster has at least one host');
  return found.host;
}

function describedHost(metadata: Metadata, naming: Naming, spec: Spec, templates: TemplateNames) {
  const pod = spec.templates?.podTemplates?.find(({ name }) => name === templates.podTemplate);
  const said = namedBy(metadata, naming, (nodeLabel) =>
    demanded(nodeLabel, pod?.spec?.nodeSelector, pod?.spec?.affinity?.nodeAffinity),
  );
  const machineType = 'named' in said ? said.named.machineType : undefined;
  const machine = machineOf(machineType, containerOf(pod)?.resources);
  const disks = disksOf(spec, templates, pod);
  if (disks !== undefined && 'reason' in disks) return { said: disks, machine: undefined, disks: undefined };
  return { said, machine, disks };
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

function containerOf(pod: PodTemplate | undefined) {
  const containers = pod?.spec?.containers ?? [];
  return containers.find(({ name }) => name === 'clickhouse') ?? containers[0];
}

/** Undefined where the object does not say: a template that lies elsewhere may. A reason where a claim cannot be used. */
function disksOf(
  spec: Spec,
  templates: TemplateNames,
  pod: PodTemplate | undefined,
): readonly DescribedDisk[] | { readonly reason: string } | undefined {
  const claims = new Map((spec.templates?.volumeClaimTemplates ?? []).map((claim) => [claim.name, claim]));
  // A mount may also be of a volume that is no claim, such as a ConfigMap.
  const mounted = (pod?.spec?.containers ?? [])
    .flatMap(({ volumeMounts }) => (volumeMounts ?? []).map(({ name }) => name))
    .filter((name) => claims.has(name));
  const { dataVolumeClaimTemplate: data, logVolumeClaimTemplate: log } = templates;
  const wanted = new Set([data, log, ...mounted].filter((name) => name != null));
  const disks: DescribedDisk[] = [];
  for (const name of wanted) {
    if (!claims.has(name)) return undefined;
    const { value, reason } = readRow(VolumeClaimTemplate, claims.get(name));
    if (value === undefined) return { reason: `volume claim template ${name}: ${reason}` };
    const { storageClassName, resources } = value.spec;
    const type = storageClassName == null ? {} : { name: storageClassName };
    disks.push({ type, ...diskSize(resources.requests.storage) });
  }
  return disks;
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
