import { z } from 'zod';
import { PRICE_TERMS } from '../../domain/prices/term.ts';
import { documented, double, id, instant, listPrice, orNull, priceAtTerm, text } from '../../http/schemas.ts';

const provider = z.strictObject({ id: id('Provider id'), name: text('Provider name') });
const region = z.strictObject({
  id: id('Region id'),
  name: text('Region name'),
  code: text('Region code of the provider'),
});
const upfront = orNull(double(), 'Paid once for the whole term; null: nothing');

const period = z.strictObject({
  list_price: listPrice,
  upfront,
  from: instant('First seen'),
  to: orNull(documented(z.string(), { format: 'date-time' }), 'End; null for the current price'),
});

export const termsSchema = z.strictObject({
  id: id('Machine id'),
  name: text('Name at the provider'),
  provider,
  region,
  terms: z.array(
    z.strictObject({
      term: documented(z.enum(PRICE_TERMS), { description: 'The way to pay for the machine' }),
      price: priceAtTerm,
      recurring_price: double('What recurs, per minute: the price without the payment upfront'),
      upfront,
      monthly_cap: orNull(double(), 'The most that a calendar month costs; null: no cap is known'),
      since: orNull(
        documented(z.string(), { format: 'date-time' }),
        'Since when: with `history=true` of this term; otherwise of the latest change of any term, and null on demand',
      ),
      price_source: documented(z.enum(['own', 'list']).exactOptional(), {
        description:
          'Whether the amounts are of the price book of the organization. Absent if no entry of a book applies now, and with `prices=list`',
      }),
      list_price: documented(listPrice.exactOptional(), {
        description: 'The list price of the same term, if `price` is an own one',
      }),
      history: documented(z.array(period).exactOptional(), {
        description:
          'With `history=true`: list prices, the newest first, at most 1000 changes of the machine',
      }),
    }),
  ),
});

const prices = (description: string) =>
  orNull(
    z.array(
      z.strictObject({
        name: text('The name at the provider'),
        default: documented(z.boolean(), { description: 'Recommendations and costs use this one' }),
        unit: documented(z.enum(['GB', 'GiB', 'address']), { description: 'What a price is for' }),
        per: documented(z.enum(['minute', 'unit']), {
          description: 'minute: a unit costs this each minute. unit: a unit costs this once',
        }),
        included: orNull(double(), 'Units a month that cost nothing; 0 for none, null: all of them'),
        tiers: documented(
          z.array(
            z.strictObject({
              from: double('In units, of a month'),
              price: double('For a unit beyond `from`'),
            }),
          ),
          { description: 'Ascending; the first is from 0' },
        ),
      }),
    ),
    `${description}; null: unknown`,
  );

export const regionPricesSchema = z.strictObject({
  region,
  provider,
  block_storage: prices('Block storage'),
  traffic_out: prices('Outgoing traffic to the internet'),
  ipv4: prices('Public IPv4 addresses'),
});

export type TermsDocument = z.output<typeof termsSchema>;
export type ShownTerm = TermsDocument['terms'][number];
export type RegionPricesDocument = z.output<typeof regionPricesSchema>;
