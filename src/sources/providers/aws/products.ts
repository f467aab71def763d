/** Products of an offer file: machines and volumes. */
import { z } from 'zod';
import { count, label, quantity } from '../../schema/fields.ts';
import { orRejected } from '../../schema/items.ts';
import { labelIn, readRow, unusable, valueIn } from '../../schema/rows.ts';
import type { RejectedRow } from '../../source.ts';

/** A type has hundreds of rows; these fields identify the ordinary one. */
const Kind = z.object({
  productFamily: z.string(),
  attributes: z.object({
    instanceType: label,
    operatingSystem: z.string(),
    tenancy: z.string(),
    capacitystatus: z.string(),
    preInstalledSw: z.string(),
    operation: z.string(),
    marketoption: z.string().optional(),
    locationType: z.string().optional(),
    regionCode: z.string().optional(),
  }),
});
type Kind = z.infer<typeof Kind>['attributes'];

const grouped = (text: string) => Number(text.replace(/ GiB$/, '').replaceAll(',', ''));

/** CPUs, and GiB of memory. */
export const SIZE = {
  vcpu: z
    .string()
    .regex(/^[\d,]+$/, { error: 'must be a whole number above 0' })
    .transform(grouped)
    .pipe(count),
  memory: z
    .string()
    .regex(/^[\d,]+(\.\d+)? GiB$/, { error: 'must be a count of GiB such as "8 GiB"' })
    .transform(grouped)
    .pipe(quantity),
};

const Shape = z.object({
  attributes: z.object({
    location: label,
    regionCode: label.optional(),
    ...SIZE,
    instanceFamily: label,
    gpu: z.string().optional(),
    physicalProcessor: z.string().optional().catch(undefined),
    processorArchitecture: z.string().optional().catch(undefined),
    storage: z.string().optional().catch(undefined),
    networkPerformance: z.string().optional().catch(undefined),
  }),
});

export interface Machine {
  readonly sku: string;
  readonly name: string;
  readonly shape: z.infer<typeof Shape>['attributes'];
}

/** The product of free trials, which is in the file of every region: it has no type of machine. */
const OF_NO_REGION = /^Global-/;

/** A zone has its own file. If the file of its region lists it too, it has another code there. */
const ZONE = /^AWS (Local|Wavelength) Zone/;

/** Returns undefined for another product, and for a type with another operating system, tenancy or contract. */
export function machineOf(
  sku: string,
  product: unknown,
  regionCode: string,
): Machine | RejectedRow | undefined {
  if (!isInstance(product) || isUsedAs(product, OF_NO_REGION)) return undefined;
  const name = labelIn(product.attributes, 'instanceType');
  return orRejected(`${name ?? sku}@${regionCode}`, { name, regionCode }, () => {
    const kind = valueIn(readRow(Kind, product), `${sku}: `).attributes;
    if (!isOrdinary(kind) || isElsewhere(kind, regionCode)) return undefined;
    const shape = valueIn(readRow(Shape, product), `${sku}: `).attributes;
    checkRegion(sku, shape, regionCode);
    return { sku, name: kind.instanceType, shape };
  });
}

/** A product of another region makes its row unusable. */
export function checkRegion(sku: string, { regionCode: stated }: Place, regionCode: string): void {
  if (stated !== undefined && stated !== regionCode)
    unusable(`${sku}: attributes.regionCode must be ${regionCode}, whose file this is; it is ${stated}`);
}

/** Includes bare metal, and products without a family if they have a type: they are rejected, not lost. */
function isInstance(product: unknown): product is { attributes?: unknown } {
  if (typeof product !== 'object' || product === null) return false;
  const family = 'productFamily' in product ? product.productFamily : undefined;
  if (typeof family === 'string') return family.startsWith('Compute Instance');
  return 'attributes' in product && labelIn(product.attributes, 'instanceType') !== undefined;
}

function isOrdinary(kind: Kind): boolean {
  return (
    kind.operatingSystem === 'Linux' &&
    kind.tenancy === 'Shared' &&
    kind.capacitystatus === 'Used' &&
    kind.preInstalledSw === 'NA' &&
    // Other operations, such as `RunInstances:CB`, are capacity bought in advance, listed at zero dollars.
    kind.operation === 'RunInstances' &&
    (kind.marketoption ?? 'OnDemand') === 'OnDemand'
  );
}

interface Place {
  readonly locationType?: string | undefined;
  readonly regionCode?: string | undefined;
}

/** A rack at the customer's site, or a zone that is no part of this region. */
export function isElsewhere({ locationType = '', regionCode }: Place, region: string): boolean {
  if (locationType === 'AWS Outposts') return true;
  return ZONE.test(locationType) && regionCode !== undefined && regionCode !== region;
}

/** The part of a usage type after the region, e.g. `EBS:VolumeUsage.gp3`. A schema would cost more: most products fail it. */
function isUsedAs(product: unknown, usage: RegExp): product is { attributes: object } {
  if (typeof product !== 'object' || product === null || !('attributes' in product)) return false;
  const { attributes } = product;
  if (typeof attributes !== 'object' || attributes === null || !('usagetype' in attributes)) return false;
  return typeof attributes.usagetype === 'string' && usage.test(attributes.usagetype);
}

/** IOPS, throughput and snapshots have other usage types. */
const VOLUME = /(^|-)EBS:VolumeUsage(\.|$)/;
const Volume = z.object({
  volumeApiName: label,
  regionCode: z.string().optional(),
  locationType: z.string().optional(),
});

/** Returns the name of a kind of EBS volumes, for example `gp3`. */
export function volumeOf(product: unknown, regionCode: string): string | undefined {
  if (!isUsedAs(product, VOLUME)) return undefined;
  const attributes = Volume.safeParse(product.attributes).data;
  if (attributes === undefined || attributes.locationType === 'AWS Outposts') return undefined;
  return (attributes.regionCode ?? regionCode) === regionCode ? attributes.volumeApiName : undefined;
}

const TRAFFIC = /^(?!Global-)(.*-)?DataTransfer-Out-Bytes$/;
const Traffic = z.object({
  transferType: z.literal('AWS Outbound'),
  toLocation: z.literal('External'),
  fromLocation: z.string(),
  fromRegionCode: z.string().optional(),
});

/** The free allowance of a month, which counts for all regions together, is a product from the location `Global`. */
export function isTraffic(product: unknown, regionCode: string): boolean {
  const attributes = isUsedAs(product, TRAFFIC) ? Traffic.safeParse(product.attributes).data : undefined;
  if (attributes === undefined || attributes.fromLocation === 'Global') return false;
  return (attributes.fromRegionCode ?? regionCode) === regionCode;
}

const ADDRESS = /(^|-)PublicIPv4:InUseAddress$/;
const Address = z.object({ regionCode: z.string().optional() });

export function isAddress(product: unknown, regionCode: string): boolean {
  const attributes = isUsedAs(product, ADDRESS) ? Address.safeParse(product.attributes).data : undefined;
  return attributes !== undefined && (attributes.regionCode ?? regionCode) === regionCode;
}
