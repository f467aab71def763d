/** Completes the clusters of a control plane with the rules of its source. Pure. */
import type {
  DescribedCluster,
  DescribedDisk,
  ReportedCluster,
  ReportedDisk,
  ReportedMachine,
} from '../domain/cluster.ts';
import type { ClusterRules } from './cluster-rules.ts';
import { rejectedRow } from './schema/items.ts';
import { type Row, rowOf, unusable, valueIn } from './schema/rows.ts';
import type { ClusterItem, RejectedRow } from './source.ts';

export async function* applyDefaults(
  items: AsyncIterable<ClusterItem> | Iterable<ClusterItem>,
  rules: ClusterRules,
): AsyncGenerator<ClusterItem<ReportedCluster>> {
  for await (const item of items) yield applyItemDefaults(item, rules);
}

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
  const owner = ownerOf(described, rules);
  const { value: cluster, reason } = rowOf(() => completed(described, valueIn(owner), rules));
  if (cluster !== undefined) return { kind: 'cluster', cluster };
  return { ...rejectedRow(described.key, reason, { organization: owner.value }), waits: true };
}

function completed(described: DescribedCluster, organization: string, rules: ClusterRules): ReportedCluster {
  const { key, name, slug, status, shards, replicas, software, createdAt } = described;
  const { defaults } = rules;
  const spelled =
    described.provider ?? defaults.provider ?? unusable('provider is missing; name one in defaults.provider');
  const place =
    described.region ?? defaults.region ?? unusable('region is missing; name one in defaults.region');
  const region = own(rules.regions, place.code) ?? place;
  const machine =
    machineOf(described, rules) ??
    unusable('machine is missing; give one in defaults.machine: its name, or its cpu, ram and ram_unit');
  return {
    organization,
    key,
    name,
    ...(slug === undefined ? {} : { slug }),
    provider: own(rules.providers, spelled) ?? described.providerName ?? spelled,
    region: { code: region.code, name: region.name ?? region.code },
    status,
    shards,
    replicas,
    user: described.user ?? {
      firstName: defaults.user?.first_name ?? '',
      lastName: defaults.user?.last_name ?? '',
    },
    machine,
    disks: disksOf(described, rules).map((disk, index) => diskOf(disk, `disks[${index}]`, rules)),
    ...(software === undefined ? {} : { software }),
    createdAt,
  };
}

/** A cluster that names another organization than the source's only one has no owner: the owner is never guessed. */
function ownerOf(
  { organization, tenant }: Pick<DescribedCluster, 'organization' | 'tenant'>,
  rules: ClusterRules,
): Row<string> {
  const named = organization ?? tenant;
  if (rules.organization !== undefined) {
    if (organization === undefined || organization === rules.organization)
      return { value: rules.organization };
    return {
      reason: `organization is "${organization}", but the source's is "${rules.organization}"; name both in organizations instead, or configure another source for that organization`,
    };
  }
  if (named === undefined) return { reason: 'organization is missing; name the owner in organization' };
  const listed = own(rules.organizations ?? {}, named);
  if (listed !== undefined) return { value: listed };
  const isSlug = organization !== undefined && rules.organizations === undefined;
  if (isSlug || rules.tenantIsOrganization) return { value: named };
  return {
    reason: `the owner of "${named}" is not known; name its organization in organizations, or set tenantIsOrganization`,
  };
}

function rejectedOf({ organization, ...row }: RejectedRow, rules: ClusterRules): RejectedRow {
  if (organization === undefined) return row;
  // Without an owner, the row covers the clusters with its key in every organization.
  const { value: slug } = ownerOf({ organization }, rules);
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

function diskOf(disk: DescribedDisk, at: string, rules: ClusterRules): ReportedDisk {
  const { type, size, unit, autoscaling = false } = disk;
  const listed = type.name === undefined ? undefined : own(rules.diskTypes, type.name);
  const rule = listed ?? own(rules.diskTypes, '*');
  const where = type.name === undefined ? 'diskTypes."*"' : `diskTypes.${JSON.stringify(type.name)}`;
  const missing = (field: string, remedy: string) =>
    unusable(`${at}.type.${field} is missing; give ${remedy} in ${where}`);
  const name = rule?.name ?? type.name ?? missing('name', 'one');
  const price = type.price ?? rule?.price ?? missing('price', 'amount, per and currency');
  const kind = type.unit ?? rule?.unit ?? missing('unit', 'Binary or Decimal');
  return { type: { name, price, unit: kind }, size, unit, autoscaling };
}

/** Returns the entry with that name, not an inherited property. */
function own<T>(named: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(named, name) ? named[name] : undefined;
}
