import { z } from 'zod';
import type { DescribedCluster, DescribedDisk } from '../../../../domain/cluster.ts';
import { softwareOf, softwareText, versionOfImage } from '../../../cluster-fields.ts';
import { label } from '../../../schema/fields.ts';
import { orRejected, rejectedRow } from '../../../schema/items.ts';
import { labelIn, readRow, rowOf, unusable, valueIn } from '../../../schema/rows.ts';
import type { ClusterItem } from '../../../source.ts';
import { ChCluster, hostsOf, shapeOf, TemplateNames } from '../altinity-hosts.ts';
import { templatesOf, withTemplates } from '../altinity-templates.ts';
import type { ClusterKind, Naming } from '../kind.ts';
import { identityOf, Metadata, namedBy, readObject } from '../metadata.ts';
import { Labels, machineOf, NodeAffinity, Resources, VolumeClaim } from '../placement.ts';

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
            image: softwareText,
            resources: Resources,
            volumeMounts: z.array(z.object({ name: z.string() })).nullish(),
          }),
        )
        .nullish(),
    })
    .nullish(),
});
type PodTemplate = z.infer<typeof PodTemplate>;

const VolumeClaimTemplate = z.object({ name: z.string(), spec: VolumeClaim });

/** Drops templates without a name, which the operator ignores. */
function named<T extends z.ZodType>(schema: T) {
  return z
    .array(z.unknown())
    .transform((all) => all.filter(isNamed))
    .pipe(z.array(schema))
    .nullish();
}

const isNamed = (each: unknown) => z.object({ name: z.string().min(1) }).safeParse(each).success;

const Clusters = z
  .array(z.unknown())
  .transform((all) => {
    const those = all.filter(isNamed);
    return those.length > 0 ? those : all.slice(0, 1).map((one) => ({ ...Object(one), ...UNNAMED }));
  })
  .pipe(z.array(ChCluster))
  .nullish();

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
      /** Only the templates that a host uses must be complete. */
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

const Installation = z.object({ metadata: Metadata, spec: Spec, status: Status });
type Installation = z.infer<typeof Installation>;

export const kind: ClusterKind = {
  id: 'click-house-installation',
  apiVersion: 'clickhouse.altinity.com/v1',
  kind: 'ClickHouseInstallation',
  plural: 'clickhouseinstallations',
  notes: `| Altinity \`ClickHouseInstallation\` | |
|---|---|
| clusters | each of \`spec.configuration.clusters\`; several clusters are named \`installation/cluster\` |
| \`shards\`, \`replicas\` | from \`layout\`: the counts, or the listed ones if these are more; 1 if omitted; the most replicas of uneven shards |
| \`status\` | \`Terminating\` once it is deleted; \`Stopped\` with \`spec.stop\`; \`Creating\` until it was reconciled once; \`Active\` for \`Completed\`; else the operator's word, e.g. \`InProgress\`, \`Aborted\` |
| \`machine\` | the resources of the \`clickhouse\` container (else the first) in the pod template of a host |
| \`disks\` | of one host: its volume claim templates, and those that its containers mount |
| version | the tag of the image of that container, such as \`24.8.14.10459.altinitystable\`; \`latest\` and the operator's default are unknown |
| templates | as the operator resolves them: the host's, else its shard's (its replica's if only replicas are listed), else the cluster's, else \`spec.defaults\`. \`status.normalizedCompleted\`, if present, has priority. If hosts of one cluster differ, machine and disks are those of most hosts, or of the first ones if the counts are equal. The installation's ClickHouseInstallationTemplates (\`spec.useTemplates\`, and \`status.usedTemplates\` for automatic ones) supply absent fields; the installation waits in quarantine if one of them cannot be read |`,

  refersTo: ['clickhouseinstallationtemplates'],

  read(object, naming) {
    const needs = templatesOf(object);
    const read = (whole: unknown) =>
      readObject(Installation, whole, (value) => clustersOf(value, naming), keysIn);
    if (needs.length === 0 || isCompleted(object)) return read(object);
    return {
      needs,
      object: readParts(object),
      read(found) {
        for (const [index, one] of found.entries()) {
          if ('missing' in one) return waiting(object, `its ${needs[index]?.what} ${one.missing}`);
        }
        const templates = found.map((one) => ('object' in one ? one.object : undefined));
        return read(withTemplates(object, templates));
      },
    };
  },
};

function readParts(object: unknown): unknown {
  const { metadata, spec, status } = z
    .object({ metadata: z.unknown(), spec: z.unknown(), status: z.unknown() })
    .catch({ metadata: undefined, spec: undefined, status: undefined })
    .parse(object);
  const [readMetadata, readStatus] = [Metadata.safeParse(metadata), Status.safeParse(status)];
  return { metadata: readMetadata.data ?? metadata, spec, status: readStatus.data ?? status };
}

function waiting(object: unknown, reason: string): readonly ClusterItem[] {
  const { uid, where } = identityOf(object);
  return (uid === undefined ? [where] : keysIn(uid, object)).map((key) => ({
    ...rejectedRow(key, `${where}: ${reason}`),
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
    const read = (): ClusterItem => {
      if (clusters.filter((other) => other.name === name).length > 1)
        unusable('another cluster of the installation has the same name');
      const resolved = completed?.configuration?.clusters?.find((other) => other.name === name);
      const described: DescribedCluster = {
        ...(completed === undefined || resolved === undefined
          ? typicalHost(metadata, naming, cluster, spec)
          : typicalHost(metadata, naming, resolved, completed)),
        key,
        name: clusters.length === 1 ? metadata.name : `${metadata.name}/${name}`,
        status: statusOf(installation),
        ...shapeOf(cluster),
        createdAt: metadata.creationTimestamp,
      };
      return { kind: 'cluster', cluster: described };
    };
    return orRejected(key, {}, read, `${metadata.namespace}/${metadata.name}, cluster ${name}: `);
  });
}

/** Returns the operator's last completed version of the object, with all templates resolved. Newer operators store none here. */
function completedSpec({ status }: Installation): Spec | undefined {
  return z.object({ spec: Spec }).safeParse(status?.normalizedCompleted).data?.spec;
}

function isCompleted(object: unknown): boolean {
  const { data } = Installation.safeParse(object);
  const completed = data && completedSpec(data)?.configuration?.clusters;
  if (completed == null) return false;
  const known = completed.map(({ name }) => name);
  const named = data?.spec.configuration?.clusters ?? [];
  return (named.length === 0 ? [UNNAMED] : named).every(({ name }) => known.includes(name));
}

function typicalHost(metadata: Metadata, naming: Naming, cluster: ChCluster, spec: Spec) {
  const hostTemplates = new Map(
    (spec.templates?.hostTemplates ?? []).map((template) => [template.name, template.spec?.templates]),
  );
  const described = hostsOf(cluster, spec.defaults?.templates, hostTemplates).map(({ templates, count }) => ({
    host: rowOf(() => describedHost(metadata, naming, spec, templates)),
    count,
  }));
  const alike = [...Map.groupBy(described, ({ host }) => JSON.stringify(host)).values()];
  const countOf = (hosts: typeof described) => hosts.reduce((sum, { count }) => sum + count, 0);
  const [most] = alike.sort((one, other) => countOf(other) - countOf(one));
  if (most?.[0] === undefined) throw new Error('unreachable: a cluster has at least one host');
  return valueIn(most[0].host);
}

function describedHost(metadata: Metadata, naming: Naming, spec: Spec, templates: TemplateNames) {
  const pod = spec.templates?.podTemplates?.find(({ name }) => name === templates.podTemplate);
  const disks = disksOf(spec, templates, pod);
  const { nodeSelector, affinity } = pod?.spec ?? {};
  const { machineType, ...named } = namedBy(metadata, naming, nodeSelector, affinity?.nodeAffinity);
  const container = containerOf(pod);
  const software = softwareOf({ engine: 'clickhouse', version: versionOfImage(container?.image) });
  return { ...named, machine: machineOf(machineType, container?.resources), disks, software };
}

function statusOf({ metadata, spec, status }: Installation): string {
  if (metadata.deletionTimestamp != null) return 'Terminating';
  const word = status?.status ?? '';
  if (word === 'Terminating' || word === 'Aborted') return word;
  // Every value that the operator reads as true.
  if (/^(1|y|yes|t|true|on|enabled?)$/i.test(String(spec.stop ?? ''))) return 'Stopped';
  if (word === 'Completed') return 'Active';
  const completed = (status?.taskIDsCompleted?.length ?? 0) > 0 || status?.normalizedCompleted != null;
  return word === '' || (word === 'InProgress' && !completed) ? 'Creating' : word;
}

function containerOf(pod: PodTemplate | undefined) {
  const containers = pod?.spec?.containers ?? [];
  return containers.find(({ name }) => name === 'clickhouse') ?? containers[0];
}

/** Returns undefined if the object lacks a claim, which another template may have. */
function disksOf(
  spec: Spec,
  templates: TemplateNames,
  pod: PodTemplate | undefined,
): readonly DescribedDisk[] | undefined {
  const claims = new Map((spec.templates?.volumeClaimTemplates ?? []).map((claim) => [claim.name, claim]));
  // A mounted volume may be no claim, such as a ConfigMap.
  const mounted = (pod?.spec?.containers ?? [])
    .flatMap(({ volumeMounts }) => (volumeMounts ?? []).map(({ name }) => name))
    .filter((name) => claims.has(name));
  const { dataVolumeClaimTemplate: data, logVolumeClaimTemplate: log } = templates;
  const wanted = new Set([data, log, ...mounted].filter((name) => name != null));
  const disks: DescribedDisk[] = [];
  for (const name of wanted) {
    if (!claims.has(name)) return undefined;
    const read = readRow(VolumeClaimTemplate, claims.get(name));
    disks.push(valueIn(read, `volume claim template ${name}: `).spec);
  }
  return disks;
}

function keysIn(uid: string, object: unknown): readonly string[] {
  const lenient = z.object({
    spec: z.object({ configuration: z.object({ clusters: z.array(z.unknown()) }) }),
  });
  const clusters = lenient.safeParse(object).data?.spec.configuration.clusters ?? [UNNAMED];
  const names = clusters.map((cluster) => labelIn(cluster, 'name')).filter((name) => name !== undefined);
  return names.length === 0 ? [uid] : [...new Set(names)].map((name) => `${uid}/${name}`);
}
