import { z } from 'zod';
import type { DescribedCluster, DescribedDisk } from '../domain/cluster.ts';
import { amount, invalid, label, oneOf, quantity, utcMicroseconds } from './schema/fields.ts';
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
