/** Completes the clusters of a control plane with the rules of its source. Pure. */
import type {
  DescribedCluster,
  DescribedDisk,
  ReportedCluster,
  ReportedDisk,
  ReportedMachine,
} from '../domain/cluster.ts';
import type { ClusterRules } from './cluster-rules.ts';
import type { ClusterItem, RejectedRow } from './source.ts';

/** Yields each item in its stored form. An incomplete cluster is rejected; the reason names the missing setting. */
export async function* applyDefaults(
  items: AsyncIterable<ClusterItem> | Iterable<ClusterItem>,
  rules: ClusterRules,
): AsyncGenerator<ClusterItem<ReportedCluster>> {
  for await (const item of items) yield applyItemDefaults(item, rules);
}

/** Completes one item. The organization of a rejected row becomes the organization's slug. */
export function applyItemDefaults(item: ClusterItem, rules: ClusterRules): ClusterItem<ReportedCluster> {
  if (item.kind === 'rejected') return rejectedOf(item, rules);
  return item.kind === 'cluster' ? applyClusterDefaults(item.cluster, rules) : item;
}

/**
 * Completes one cluster, or rejects it with a reason that names the missing setting. Its own values have priority.
 * Nothing is guessed, except: a missing creator is two empty names, a missing region name the code, missing disks none.
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
  if (spelled === undefined) return unusable('provider is missing; name one in defaults.provider');
  const place = described.region ?? defaults.region;
  if (place === undefined) return unusable('region is missing; name one in defaults.region');
  const region = own(rules.regions, place.code) ?? place;
  const machine = machineOf(described, rules);
  if (machine === undefined)
    return unusable(
      'machine is missing; give one in defaults.machine: its name, or its cpu, ram and ram_unit',
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
  const named = organization ?? tenant;
  if (rules.organization !== undefined) {
    if (organization === undefined || organization === rules.organization)
      return { slug: rules.organization };
    return {
      reason: `organization is "${organization}", but the source's is "${rules.organization}"; name both in organizations instead, or configure another source for that organization`,
    };
  }
  if (named === undefined) return { reason: 'organization is missing; name the owner in organization' };
  const listed = own(rules.organizations ?? {}, named);
  if (listed !== undefined) return { slug: listed };
  const isSlug = organization !== undefined && rules.organizations === undefined;
  if (isSlug || rules.tenantIsOrganization) return { slug: named };
  return {
    reason: `the owner of "${named}" is not known; name its organization in organizations, or set tenantIsOrganization`,
  };
}

function rejectedOf({ organization, ...row }: RejectedRow, rules: ClusterRules): RejectedRow {
  if (organization === undefined) return row;
  // Without an owner, the row covers the clusters with its key in every organization.
  const { slug } = ownerOf({ organization }, rules);
  return slug === undefined ? row : { ...row, organization: slug };
}

type RuledMachine = NonNullable<ClusterRules['defaults']['machine']>;

function machineOf({ machine }: DescribedCluster, rules: ClusterRules): ReportedMachine | undefined {
  if (machine === undefined) {
    const { machine: standard } = rules.defaults;
    return standard === undefined ? undefined : reportedMachine(standard);
  }
  const ruled = machine.name === undefined ? undefined : own(rules.machines, machine.name);
  if (ruled === undefined) return machine;
  const { name, ...shape } = reportedMachine(ruled);
  // A rule without a name: the source's name of the shape is no machine type of a provider.
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

function diskOf(
  { type, size, unit, autoscaling = false }: DescribedDisk,
  rules: ClusterRules,
): ReportedDisk | string {
  const listed = type.name === undefined ? undefined : own(rules.diskTypes, type.name);
  const rule = listed ?? own(rules.diskTypes, '*');
  const where = type.name === undefined ? 'diskTypes."*"' : `diskTypes.${JSON.stringify(type.name)}`;
  const name = rule?.name ?? type.name;
  if (name === undefined) return `type.name is missing; give one in ${where}`;
  const price = type.price ?? rule?.price;
  if (price === undefined)
    return `type.price is missing; give amount, per and currency in ${where}, field price`;
  const kind = type.unit ?? rule?.unit;
  if (kind === undefined) return `type.unit is missing; give Binary or Decimal in ${where}, field unit`;
  return { type: { name, price, unit: kind }, size, unit, autoscaling };
}

/** Returns the entry with that name, not an inherited property. */
function own<T>(named: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(named, name) ? named[name] : undefined;
}
