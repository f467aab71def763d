import { z } from 'zod';
import type { MachineDocument } from '../../domain/machine.ts';
import type { RegionItem } from '../../domain/prices/region-price.ts';
import { PRICE_TERMS, type PriceTerm } from '../../domain/prices/term.ts';
import { documented, id, instant, object, orNull, pricePerMinute, text } from '../../http/schemas.ts';

export interface TermPeriod {
  readonly effective_price: number;
  readonly upfront: number | null;
  readonly from: string;
  readonly to: string | null;
}

export interface ShownTerm {
  readonly term: PriceTerm;
  readonly price: number;
  readonly upfront: number | null;
  readonly effective_price: number;
  readonly monthly_cap: number | null;
  readonly since: string | null;
  readonly price_source?: 'own' | 'list';
  readonly list_price?: number;
  readonly history?: readonly TermPeriod[];
}

export interface TermsDocument extends Pick<MachineDocument, 'id' | 'name' | 'provider' | 'region'> {
  readonly terms: readonly ShownTerm[];
}

export interface ShownRegionPrice {
  readonly name: string;
  readonly default: boolean;
  readonly unit: 'GB' | 'GiB' | 'address';
  readonly per: 'minute' | 'unit';
  readonly included: number | null;
  readonly tiers: readonly { readonly from: number; readonly price: number }[];
}

export interface RegionPricesDocument
  extends Pick<MachineDocument, 'provider' | 'region'>,
    Readonly<Record<RegionItem, readonly ShownRegionPrice[] | null>> {}

const provider = object<MachineDocument['provider']>({ id: id('Provider id'), name: text('Provider name') });
const region = object<MachineDocument['region']>({
  id: id('Region id'),
  name: text('Region name'),
  code: text('Region code of the provider'),
});
const upfront = orNull(
  documented(z.number(), { format: 'double' }),
  'Paid once for the whole term; null: nothing',
);
const effective = documented(z.number(), {
  format: 'double',
  description: 'Per minute, with the payment upfront spread over the term of 1 or 3 years of 8,760 hours',
});

const period = object<TermPeriod>({
  effective_price: effective,
  upfront,
  from: instant('First seen'),
  to: orNull(documented(z.string(), { format: 'date-time' }), 'End; null for the current price'),
});

export const termsSchema = object<TermsDocument>({
  id: id('Machine id'),
  name: text('Name at the provider'),
  provider,
  region,
  terms: z.array(
    z.strictObject({
      term: documented(z.enum(PRICE_TERMS), { description: 'The way to pay for the machine' }),
      price: documented(pricePerMinute.clone(), { format: 'double', description: 'What recurs, per minute' }),
      upfront,
      effective_price: effective,
      monthly_cap: orNull(
        documented(z.number(), { format: 'double' }),
        'The most that a calendar month costs; null: no cap is known',
      ),
      since: orNull(
        documented(z.string(), { format: 'date-time' }),
        'Since when: with `history=true` of this term; otherwise of the latest change of any term, and null on demand',
      ),
      price_source: documented(z.enum(['own', 'list']).exactOptional(), {
        description:
          'Whether the amounts are of the price book of the organization. Absent if no entry of a book applies now, and with `prices=list`',
      }),
      list_price: documented(z.number().exactOptional(), {
        format: 'double',
        description: 'The effective list price, if the amounts are own prices',
      }),
      history: documented(z.array(period).exactOptional(), {
        description: 'With `history=true`: the newest first, at most 1000 changes of the machine',
      }),
    }),
  ),
});

const prices = (description: string) =>
  orNull(
    z.array(
      object<ShownRegionPrice>({
        name: text('The name at the provider'),
        default: documented(z.boolean(), { description: 'Recommendations and costs use this one' }),
        unit: documented(z.enum(['GB', 'GiB', 'address']), { description: 'What a price is for' }),
        per: documented(z.enum(['minute', 'unit']), {
          description: 'minute: a unit costs this each minute. unit: a unit costs this once',
        }),
        included: orNull(
          documented(z.number(), { format: 'double' }),
          'Units a month that cost nothing; 0 for none, null: all of them',
        ),
        tiers: documented(
          z.array(
            z.strictObject({
              from: documented(z.number(), { format: 'double', description: 'In units, of a month' }),
              price: documented(z.number(), { format: 'double', description: 'For a unit beyond `from`' }),
            }),
          ),
          { description: 'Ascending; the first is from 0' },
        ),
      }),
    ),
    `${description}; null: unknown`,
  );

export const regionPricesSchema = object<RegionPricesDocument>({
  region,
  provider,
  block_storage: prices('Block storage'),
  traffic_out: prices('Outgoing traffic to the internet'),
  ipv4: prices('Public IPv4 addresses'),
});
