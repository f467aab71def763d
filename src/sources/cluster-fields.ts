/** Fields of a cluster as the HTTP contract writes them, for control planes whose payloads have the same or like ones. */
import { z } from 'zod';
import type { DescribedDisk } from '../domain/cluster.ts';
import { amount, label, oneOf, quantity } from './schema/fields.ts';
import { utcMicroseconds } from './schema/instant.ts';

export const memoryUnit = oneOf(['Binary', 'Decimal']);

/** Stands in a URL as it is, between two slashes. */
export const pathSegment = label.refine(
  (text) => /^[A-Za-z0-9._~-]+$/.test(text) && !/^\.{1,2}$/.test(text),
  { error: 'must be made of letters, digits and - . _ ~' },
);

/** Text of any precision and offset, as UTC text with microseconds, see instant.ts. */
export const instant = z
  .string({ error: 'must be an instant such as 2022-02-14T10:11:26.567713' })
  .transform((text, context) => {
    const utc = utcMicroseconds(text);
    if (utc !== undefined) return utc;
    context.addIssue({ code: 'custom', message: 'must be an instant such as 2022-02-14T10:11:26.567713' });
    return z.NEVER;
  });

/** Part of a person's name; may be empty. */
export const nameOfPerson = z.union([z.literal(''), label], { error: 'must be text, which may be empty' });

/** Its price is per minute. */
export const DiskRow = z.object({
  type: z.object({ name: label, price: amount, unit: memoryUnit }),
  size: quantity,
  unit: oneOf(['GB', 'TB', 'GiB', 'TiB']),
  autoscaling: z.boolean(),
});

/** @param currency the ISO 4217 code of its price */
export function describedDisk(row: z.infer<typeof DiskRow>, currency: string): DescribedDisk {
  const { type, size, unit, autoscaling } = row;
  const price = { amount: type.price, per: 'minute', currency } as const;
  return { type: { name: type.name, price, unit: type.unit }, size, unit, autoscaling };
}
