/** Completes the clusters of a control plane by the rules of its source. Pure. */
import type {
  DescribedCluster,
  DescribedDisk,
  ReportedCluster,
  ReportedDisk,
  ReportedMachine,
} from '../domain/cluster.ts';
import type { ClusterRules } from './cluster-rules.ts';
import type { ClusterItem, RejectedRow } from './source.ts';

/** Each item as it is stored. A cluster that stays incomplete is rejected, with the setting that would complete it. */
export async function* applyDefaults(
  items: AsyncIterable<ClusterItem> | Iterable<ClusterItem>,
  rules: ClusterRules,
): AsyncGenerator<ClusterItem<ReportedCluster>> {
  for await (const item of items) yield applyItemDefaults(item, rules);
}

/** One item. The organization of a rejected one becomes the organization's slug. */
export function applyItemDefaults(item: ClusterItem, rules: ClusterRules): ClusterItem<ReportedCluster> {
  if (item.kind === 'rejected') return rejectedOf(item, rules);
  return item.kind === 'cluster' ? applyClusterDefaults(item.cluster, rules) : item;
}

/**
 * The cluster's own values are kept, but for names that the rules translate; missing ones come from the source's defaults.
 * Nothing else is invented, except: a missing creator is two empty names, a missing region name the region's code, missing
 * disks an empty list, a missing `autoscaling` false.
 * @returns the whole cluster, or a rejected row whose reason names the setting that would give what is missing
 */
export function applyClusterDefaults(
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

/** A cluster that names another organization than the source's only one has no owner: the owner is never guessed. */
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
  // Without an owner the row stands for the clusters of its key in every organization.
  const { slug } = ownerOf({ organization }, rules);
  return slug === undefined ? row : { ...row, organization: slug };
}

/** A machine in a rule or default, with the contract's field names. */
type RuledMachine = NonNullable<ClusterRules['defaults']['machine']>;

function machineOf({ machine }: DescribedCluster, rules: ClusterRules): ReportedMachine | undefined {
  if (machine === undefined) {
    const { machine: standard } = rules.defaults;
    return standard === undefined ? undefined : reportedMachine(standard);
  }
  const ruled = machine.name === undefined ? undefined : own(rules.machines, machine.name);
  if (ruled === undefined) return machine;
  const { name, ...shape } = reportedMachine(ruled);
  // A rule without a name: the source's own name for the shape is no type of a provider, and is dropped.
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

/** The entry of that name, not a property that every object inherits. */
function own<T>(named: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(named, name) ? named[name] : undefined;
}
