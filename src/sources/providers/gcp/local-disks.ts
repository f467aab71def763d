/** Local disks that are part of a machine type. Google charges for them as for cores and memory. */
import { z } from 'zod';
import { count } from '../../schema/fields.ts';

/**
 * Every type of these series has local disks, and the types of other series with such a name.
 * Source: https://docs.cloud.google.com/compute/docs/disks/add-local-ssd and …/storage-optimized-machines.
 */
const NAMED = /^z(3|4d|4m)-|-(standard|high)?lssd\b/;

/** GiB of one disk, by series. Source: https://docs.cloud.google.com/compute/docs/disks/local-ssd. */
const DISK: Readonly<Record<string, number>> = {
  c3: 375,
  c3d: 375,
  c4: 375,
  c4a: 375,
  c4d: 375,
  h4d: 375,
  z3: 3000,
  z4d: 3500,
};
/** GiB of all disks. Bare metal has fewer and larger ones than its series. */
const WHOLE: Readonly<Record<string, number>> = {
  'c4-highmem-288-lssd-metal': 18_000,
  'c4-standard-288-lssd-metal': 18_000,
  'z3-highmem-192-highlssd-metal': 72_000,
};

const Bundled = z.object({ partitionCount: count });
const None = z.object({ partitionCount: z.literal(0) });

interface Type {
  readonly description?: string | undefined;
  readonly bundledLocalSsds?: unknown;
}

/** Returns GiB of local disks; 0 for a type without any, and undefined if their size is not known. */
export function localDisks(name: string, zones: readonly Type[]): number | undefined {
  const stated = zones.filter(
    ({ bundledLocalSsds: disks }) => disks != null && !None.safeParse(disks).success,
  );
  if (!NAMED.test(name) && stated.length === 0) return 0;
  const [number, ...others] = new Set(zones.map(numberOf));
  const each = name.endsWith('-metal') ? undefined : DISK[name.split('-')[0] ?? ''];
  if (WHOLE[name] !== undefined) return WHOLE[name];
  return number === undefined || each === undefined || others.length > 0 ? undefined : number * each;
}

/** `bundledLocalSsds`, else the description: "8 vCPUs, 32 GB RAM, 2 local SSDs". */
function numberOf({ description = '', bundledLocalSsds }: Type): number | undefined {
  const { data } = Bundled.safeParse(bundledLocalSsds);
  const described = / (\d{1,3}) local SSDs?\b/i.exec(description)?.[1];
  return data?.partitionCount ?? (described === undefined ? undefined : Number(described) || undefined);
}
