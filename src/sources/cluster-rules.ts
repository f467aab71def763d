import { z } from 'zod';
import { memoryUnit, nameOfPerson, pathSegment } from './cluster-fields.ts';
import { amount, count, currencyCode, label, quantity } from './schema/fields.ts';

const Shape = z.strictObject({
  name: label.optional(),
  cpu: count,
  ram: quantity,
  ram_unit: memoryUnit,
});
const Machine = z.union([label.transform((name) => ({ name })), z.strictObject({ name: label }), Shape], {
  error: "must be a machine type's name, or its shape: cpu, ram and ram_unit (Binary or Decimal)",
});

const Price = z.strictObject({
  amount,
  per: z.enum(['minute', 'hour', 'month'], { error: 'must be minute, hour or month' }),
  currency: currencyCode,
});
const DiskType = z.strictObject({
  name: label.optional(),
  price: Price.optional(),
  unit: memoryUnit.optional(),
});
const Disk = z.strictObject({
  type: label,
  size: quantity,
  unit: z.enum(['GB', 'TB', 'GiB', 'TiB'], { error: 'must be GB, TB, GiB or TiB' }),
  autoscaling: z.boolean({ error: 'must be true or false' }).default(false),
});

const Region = z.strictObject({ code: label, name: label.optional() });

const Defaults = z.strictObject({
  provider: label.optional(),
  region: Region.optional(),
  machine: Machine.optional(),
  user: z.strictObject({ first_name: nameOfPerson, last_name: nameOfPerson }).optional(),
  disks: z.array(Disk).optional(),
});

/** The optional fields of an entry of `clusters` in the configuration (docs/adapters.md). */
export const RULES = {
  organization: pathSegment.optional(),
  organizations: z.record(label, pathSegment).optional(),
  tenantIsOrganization: z.boolean({ error: 'must be true or false' }).default(false),
  defaults: Defaults.default({}),
  providers: z.record(label, label).default({}),
  regions: z.record(label, Region).default({}),
  machines: z.record(label, Machine).default({}),
  diskTypes: z.record(label, DiskType).default({}),
} as const;

export const ClusterRules = z.strictObject(RULES);
export type ClusterRules = z.infer<typeof ClusterRules>;

export const NO_RULES: ClusterRules = ClusterRules.parse({});

export function contradictionIn(rules: ClusterRules): string | undefined {
  const { organization, organizations, tenantIsOrganization } = rules;
  if (organization === undefined || (organizations === undefined && !tenantIsOrganization)) return undefined;
  const other = organizations === undefined ? 'tenantIsOrganization' : 'organizations';
  return `organization names the owner of every cluster; remove it, or ${other}`;
}
