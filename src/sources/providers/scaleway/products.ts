/** Fields of `PublicCatalogProduct` in scaleway-sdk-go, api/product_catalog/v2alpha1. */
import { z } from 'zod';
import { currencyCode, label } from '../../schema/fields.ts';

export const Product = z.object({
  sku: label,
  /** "Precisely one of Global, Region, Zone, Datacenter must be set." */
  locality: z
    .object({
      zone: z
        .string()
        .regex(/^[a-z0-9]+(-[a-z0-9]+)+$/, { error: 'must be a zone such as fr-par-1' })
        .nullish(),
      region: z.string().nullish(),
      datacenter: z.string().nullish(),
      global: z.boolean().nullish(),
    })
    .refine((locality) => Object.values(locality).some((place) => place != null), {
      error: 'must have one of zone, region, datacenter and global',
    }),
  status: z.string().nullish(),
});

/** A product of type `instance`, in one zone. */
export const InstanceProduct = Product.extend({
  /** The name of the type in the Instance API. */
  properties: z
    .object({ instance: z.object({ offer_id: z.string() }).optional().catch(undefined) })
    .optional()
    .catch(undefined),
  /** Read with the type that it ends. */
  end_of_life_at: z.unknown().optional(),
});
export type InstanceProduct = z.infer<typeof InstanceProduct>;

/**
 * Statuses of products that cannot be ordered any more: `end_of_deployment` is "must not be used for new deployments", and the
 * others follow it. `end_of_growth` precedes it.
 */
const ENDED: ReadonlySet<string> = new Set([
  'end_of_deployment',
  'end_of_support',
  'end_of_sale',
  'end_of_life',
  'retired',
]);

const Status = z.object({ status: z.string() });

/** Whether a product can no longer be ordered. It may have no price any more. */
export const isEnded = (row: unknown): boolean => ENDED.has(Status.safeParse(row).data?.status ?? '');

/** `scw.Money`: whole units and billionths. */
export const Money = z
  .object({
    currency_code: currencyCode,
    units: z.coerce.number().int().min(0),
    nanos: z.int().min(0).max(999_999_999),
  })
  .transform(({ currency_code: currency, units, nanos }) => {
    return { currency, amount: `${units}.${String(nanos).padStart(9, '0')}` };
  });
