/** Reservations of well-known machines of AWS. */
import { expect, it } from 'vitest';
import { hourly, leases, machine, read, type Way } from './aws-payloads.ts';

const OPTIONS = ['No Upfront', 'Partial Upfront', 'All Upfront'];

/**
 * The rates are those that https://instances.vantage.sh publishes for Linux in us-east-1, and the payments give them. For c4.large
 * AWS's price list of July 2017 states the payments. Each payment is dollars an hour, and dollars upfront.
 */
it.each([
  ['t2.nano', '1yr', '0.0036, 0.0017 + 15, 0 + 29', [0.0036, 0.003412, 0.003311]],
  ['t2.nano', '3yr', '0.0025, 0.0012 + 30, 0 + 57', [0.0025, 0.002342, 0.002169]],
  ['m6a.xlarge', '1yr', '0.11431, 0.05443 + 477', [0.11431, 0.108882]],
  ['m6a.xlarge', '3yr', '0.07838, 0.03629 + 954', [0.07838, 0.072591]],
  ['m6a.2xlarge', '1yr', '0.22861', [0.22861]],
  ['m6a.2xlarge', '3yr', '0.15676', [0.15676]],
  ['c4.large', '1yr', '0.063, 0.03 + 263', [0.063, 0.060023]],
] as const)('a reservation of %s for %s is read at the published rate', async (name, length, text, rates) => {
  const hours = length === '1yr' ? 8760 : 3 * 8760;
  const payments = text.split(', ').map((payment) => payment.split(' + '));
  const ways = payments.map(([perHour, fee], i): Way => [length, OPTIONS[i] ?? '', perHour, fee]);
  const { offers, problems } = await read(leases(...ways), { products: { A: machine(name) } });
  expect(problems).toEqual([]);
  const found = payments.map(([perHour, fee]) =>
    Number((Number(perHour) + Number(fee ?? 0) / hours).toFixed(6)),
  );
  expect(found).toEqual(rates);
  // The last one is the cheapest.
  const [perHour = '', fee] = payments.at(-1) ?? [];
  expect(offers.find((offer) => offer.name === name)?.terms).toEqual({
    [length === '1yr' ? 'reserved_1y' : 'reserved_3y']: hourly(perHour, fee),
  });
});
