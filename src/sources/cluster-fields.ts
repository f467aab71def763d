import { z } from 'zod';
import type { DescribedCluster, DescribedDisk } from '../domain/cluster.ts';
import { engineNamed, type Software } from '../domain/engine.ts';
import { amount, endTime, invalid, label, oneOf, quantity, utcMicroseconds } from './schema/fields.ts';
import { orRejected, rejectedRow } from './schema/items.ts';
import { readRow } from './schema/rows.ts';
import { badAnswer, type ClusterItem } from './source.ts';

export const memoryUnit = oneOf(['Binary', 'Decimal']);

/** Text that needs no encoding between two slashes of a URL. */
export const pathSegment = label.refine(
  (text) => /^[A-Za-z0-9._~-]+$/.test(text) && !/^\.{1,2}$/.test(text),
  { error: 'must be made of letters, digits and - . _ ~' },
);

const AN_INSTANT = 'must be an instant such as 2022-02-14T10:11:26.567713';

export const instant = z
  .string({ error: AN_INSTANT })
  .transform((text, context) => utcMicroseconds(text) ?? invalid(context, AN_INSTANT));

export const nameOfPerson = z.union([z.literal(''), label], { error: 'must be text, which may be empty' });

/** The price is per minute. */
export const DiskRow = z.object({
  type: z.object({ name: label, price: amount, unit: memoryUnit }),
  size: quantity,
  unit: oneOf(['GB', 'TB', 'GiB', 'TiB']),
  autoscaling: z.boolean(),
});

export function describedDisk(row: z.infer<typeof DiskRow>, currency: string): DescribedDisk {
  const { type, size, unit, autoscaling } = row;
  const price = { amount: type.price, per: 'minute', currency } as const;
  return { type: { name: type.name, price, unit: type.unit }, size, unit, autoscaling };
}

export function disksOfGib(size: number | null | undefined): readonly DescribedDisk[] | undefined {
  if (size == null) return undefined;
  return size === 0 ? [] : [{ type: {}, size, unit: 'GiB' }];
}

/**
 * An engine or a version. The contract does not have them, so another value is unknown instead of a problem of the row; what an
 * organization pays for stays visible.
 */
export const softwareText = label
  .refine((text) => text.length <= 100)
  .nullish()
  .catch(undefined);

/** The end of a version's support by the provider, with the same rule. */
export const softwareEnd = endTime.nullish().catch(undefined);

type Stated = { readonly [Field in keyof Software]?: string | null | undefined };

/** Returns what runs on a cluster. @param stated in the source's own words; `endOfLife` as `endTime` returns it */
export function softwareOf({ engine, version, endOfLife }: Stated): Software | undefined {
  const known = {
    ...(engine == null ? {} : { engine: engineNamed(engine) }),
    ...(version == null ? {} : { version }),
    ...(endOfLife == null ? {} : { endOfLife: endOfLife.slice(0, 10) }),
  };
  return Object.keys(known).length === 0 ? undefined : known;
}

/** Returns the version in a container image's tag, e.g. `18.1` of `postgresql:18.1-system-trixie`; undefined for `latest`. */
export function versionOfImage(image: string | null | undefined): string | undefined {
  const name = (image ?? '').split('@')[0]?.split('/').at(-1) ?? '';
  return versionOfTag(name.includes(':') ? name.slice(name.indexOf(':') + 1) : undefined);
}

export function versionOfTag(tag: string | null | undefined): string | undefined {
  return /^v?(\d{1,5}(?:\.\d{1,7}){0,4})(?=$|[-.+_])/.exec(tag ?? '')?.[1];
}

export function clusterItem(key: string, read: () => DescribedCluster): ClusterItem {
  return orRejected(key, {}, () => ({ kind: 'cluster', cluster: read() }));
}

/** Yields the item of a row of a wanted type, and nothing for another type. @param field the field with the type */
export function* itemOfType(
  row: unknown,
  key: string,
  field: string,
  wanted: ReadonlySet<string>,
  read: () => DescribedCluster,
): Generator<ClusterItem> {
  const { value, reason } = readRow(z.object({ [field]: label }), row);
  if (value === undefined) yield rejectedRow(key, reason);
  else if (wanted.has(value[field] ?? '')) yield clusterItem(key, read);
}

/**
 * Returns the ids in a list, which is `at` this place in the payload.
 * @throws SourceError `invalid` for a row without a usable id: the clusters below it must not count as missing
 */
export function idsIn(
  path: string,
  rows: readonly unknown[],
  id: z.ZodType<string>,
  at: readonly PropertyKey[] = [],
): ReadonlySet<string> {
  const found = new Set<string>();
  for (const [index, row] of rows.entries()) {
    const { value, reason } = readRow(id, row, [...at, index]);
    if (value === undefined) throw badAnswer(`${path}: ${reason}`);
    found.add(value);
  }
  return found;
}
