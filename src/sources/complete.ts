/** From what a control plane says of a cluster to what is stored of it, by the rules of its source. Pure. */
import type {
  DescribedCluster,
  DescribedDisk,
  ReportedCluster,
  ReportedDisk,
  ReportedMachine,
} from '../domain/cluster.ts';
import type { ClusterRules } from './cluster-rules.ts';
import type { ClusterItem, RejectedRow } from './source.ts';

/** Each item as it is stored; the rows that the rules do not make whole are rejected, and say which setting would. */
export async function* completed(
  items: AsyncIterable<ClusterItem> | Iterable<ClusterItem>,
  rules: ClusterRules,
): AsyncGenerator<ClusterItem<ReportedCluster>> {
  for await (const item of items) yield completeItem(item, rules);
}

/** One item; a rejected one that says whose it is says it by the organization's slug afterwards. */
export function completeItem(item: ClusterItem, rules: ClusterRules): ClusterItem<ReportedCluster> {
  if (item.kind === 'rejected') return rejectedOf(item, rules);
  return item.kind === 'cluster' ? complete(item.cluster, rules) : item;
}

/**
 * What the cluster says itself stands, but for a name that the rules translate; what it does not say comes from the
 * source's defaults. Nothing is made up: only a missing creator becomes two empty names, a missing region name the
 * region's code, missing disks an empty list, and a disk that says nothing of it does not grow by itself.
 * @returns the whole cluster, or why there is none and the setting that would give what is missing
 */
export function complete(
  described: DescribedCluster,
  rules: ClusterRules,
): Extract<ClusterItem<ReportedCluster>, { kind: 'cluster' | 'rejected' }> {
  const { key, name, status, shards, replicas, createdAt } = described;
  const { defaults } = rules;
  const owner = ownerOf(described, rules);
  const unusable = (reason: string): RejectedRow => ({
    kind: 'rejected',
    key,
    ...(owner.slug === undefined ? {} : { organization: owner.slug }),
    reason,
    waits: true,
  });
  if (owner.slug === undefined) return unusable(owner.reason);
  const spelled = described.provider ?? defaults.provider;
  if (spelled === undefined) return unusable('provider is missing; say one in defaults.provider');
  const place = described.region ?? defaults.region;
  if (place === undefined) return unusable('region is missing; say one in defaults.region');
  const region = own(rules.regions, place.code) ?? place;
  const machine = machineOf(described, rules);
  if (machine === undefined)
    return unusable(
      'machine is missing; say one in defaults.machine: its name, or its cpu, ram and ram_unit',
    );
  const disks: ReportedDisk[] = [];
  for (const [index, disk] of disksOf(described, rules).entries()) {
    const found = diskOf(disk, rules);
    if (typeof found === 'string') return unusable(`disks[${index}].${found}`);
    disks.push(found);
  }
  const user = defaults.user;
  const cluster: ReportedCluster = {
    organization: owner.slug,
    key,
    name,
    ...(described.slug === undefined ? {} : { slug: described.slug }),
    provider: own(rules.providers, spelled) ?? described.providerName ?? spelled,
    region: { code: region.code, name: region.name ?? region.code },
    status,
    shards,
    replicas,
    user: described.user ?? { firstName: user?.first_name ?? '', lastName: user?.last_name ?? '' },
    machine,
    disks,
    createdAt,
  };
  return { kind: 'cluster', cluster };
}

type Owner = { readonly slug: string } | { readonly slug?: undefined; readonly reason: string };

/** A cluster that says that it is somebody else's than the source's one organization is nobody's: never guess. */
function ownerOf(
  { organization, tenant }: Pick<DescribedCluster, 'organization' | 'tenant'>,
  rules: ClusterRules,
): Owner {
  const said = organization ?? tenant;
  if (rules.organization !== undefined) {
    if (organization === undefined || organization === rules.organization)
      return { slug: rules.organization };
    return {
      reason: `organization is "${organization}", while the source's is "${rules.organization}"; name both in organizations in its place, or read that organization from a source of its own`,
    };
  }
  if (said === undefined) return { reason: 'organization is missing; say whose it is in organization' };
  const listed = own(rules.organizations ?? {}, said);
  if (listed !== undefined) return { slug: listed };
  const isSlug = organization !== undefined && rules.organizations === undefined;
  if (isSlug || rules.tenantIsOrganization) return { slug: said };
  return {
    reason: `whose "${said}" is, is not known; name its organization in organizations, or say that tenantIsOrganization`,
  };
}

function rejectedOf({ organization, ...row }: RejectedRow, rules: ClusterRules): RejectedRow {
  if (organization === undefined) return row;
  // A row whose owner cannot be told speaks for the clusters of its key, whoever has them.
  const { slug } = ownerOf({ organization }, rules);
  return slug === undefined ? row : { ...row, organization: slug };
}

/** In a rule or default a machine is written as the contract writes it. */
type RuledMachine = NonNullable<ClusterRules['defaults']['machine']>;

function machineOf({ machine }: DescribedCluster, rules: ClusterRules): ReportedMachine | undefined {
  if (machine === undefined) {
    const { machine: standard } = rules.defaults;
    return standard === undefined ? undefined : reportedMachine(standard);
  }
  const ruled = machine.name === undefined ? undefined : own(rules.machines, machine.name);
  if (ruled === undefined) return machine;
  const { name, ...shape } = reportedMachine(ruled);
  // The name of a rule that gives only a shape would be the source's own word for it: no type of a provider.
  if (shape.cpu !== undefined) return name === undefined ? shape : { name, ...shape };
  return { ...machine, name: name ?? '' };
}

function reportedMachine(machine: RuledMachine): ReportedMachine {
  if (!('cpu' in machine)) return { name: machine.name };
  const { name, cpu, ram, ram_unit: ramUnit } = machine;
  return { ...(name === undefined ? {} : { name }), cpu, ram, ramUnit };
}

function disksOf({ disks }: DescribedCluster, { defaults }: ClusterRules): readonly DescribedDisk[] {
  if (disks !== undefined) return disks;
  return (defaults.disks ?? []).map(({ type, ...disk }) => ({ ...disk, type: { name: type } }));
}

/** The disk, or which of its fields is missing and the setting that would give it. */
function diskOf(
  { type, size, unit, autoscaling = false }: DescribedDisk,
  rules: ClusterRules,
): ReportedDisk | string {
  const listed = type.name === undefined ? undefined : own(rules.diskTypes, type.name);
  const rule = listed ?? own(rules.diskTypes, '*');
  const where = type.name === undefined ? 'diskTypes."*"' : `diskTypes.${JSON.stringify(type.name)}`;
  const name = rule?.name ?? type.name;
  if (name === undefined) return `type.name is missing; say one in ${where}`;
  const price = type.price ?? rule?.price;
  if (price === undefined)
    return `type.price is missing; say amount, per and currency in ${where}, field price`;
  const kind = type.unit ?? rule?.unit;
  if (kind === undefined) return `type.unit is missing; say Binary or Decimal in ${where}, field unit`;
  return { type: { name, price, unit: kind }, size, unit, autoscaling };
}

/** What is written under that name, and not what every object has. */
function own<T>(named: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(named, name) ? named[name] : undefined;
}
