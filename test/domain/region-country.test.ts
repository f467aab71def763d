import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CONTINENTS, COUNTRIES_OF, continentOf, countryOfRegion } from '../../src/domain/region-country.ts';
import { needsRecorded, RECORDED, WRITTEN } from '../support/payloads.ts';

const PROVIDERS: Readonly<Record<string, number>> = {
  gcp: 1,
  aws: 2,
  azure: 3,
  ovh: 4,
  hetzner: 5,
  linode: 6,
  vultr: 7,
  scaleway: 8,
  digitalocean: 9,
  upcloud: 10,
  oci: 11,
  exoscale: 12,
  stackit: 14,
};

it.each([
  [5, 'fsn1', 'DE', 'europe'],
  [2, 'us-east-1', 'US', 'north_america'],
  [3, 'mexicocentral', 'MX', 'north_america'],
  [3, 'brazilsoutheast', 'BR', 'south_america'],
  [1, 'africa-south1', 'ZA', 'africa'],
  [6, 'gb-lon', 'GB', 'europe'],
  [10, 'uk-lon1', 'GB', 'europe'],
  // Regions that are younger than the table.
  [4, 'GRA12', 'FR', 'europe'],
  [4, 'RBX-B', 'FR', 'europe'],
  [8, 'fr-par-4', 'FR', 'europe'],
  [12, 'de-fra-2', 'DE', 'europe'],
  [14, 'eu01-m', 'DE', 'europe'],
])('provider %i has %s in %s, %s', (provider, code, country, continent) => {
  expect(countryOfRegion(provider, code)).toBe(country);
  expect(continentOf(country)).toBe(continent);
});

it.each([
  [5, 'fsn2x'],
  [2, 'xx-east-1'],
  [1, 'fsn1'],
  [11, 'commercial'],
  [999, 'de-fra-1'],
  [10, ''],
])('does not guess the country of provider %i, %s', (provider, code) => {
  expect(countryOfRegion(provider, code)).toBeUndefined();
  expect(continentOf(undefined)).toBeUndefined();
});

it('has each country on one continent', () => {
  const all = CONTINENTS.flatMap((continent) => COUNTRIES_OF[continent]);
  expect(new Set(all).size).toBe(all.length);
  expect(all.every((country) => /^[A-Z]{2}$/.test(country))).toBe(true);
});

const lists = [
  { kind: 'small', payloads: WRITTEN, atLeast: 40, options: {} },
  { kind: 'recorded', payloads: RECORDED, atLeast: 301, options: needsRecorded },
];
for (const { kind, payloads, atLeast, options } of lists)
  it(`agrees with the ${kind} list of countries, and knows their continents`, options, () => {
    const text = readFileSync(new URL('next/regions/countries.csv', payloads.folder), 'utf8');
    const known = text
      .trim()
      .split('\n')
      .slice(1)
      .flatMap((row) => {
        const [provider = '', code = '', country = ''] = row.split(',');
        const id = PROVIDERS[provider];
        return id === undefined ? [] : [{ id, code, country }];
      });
    expect(known.length).toBeGreaterThanOrEqual(atLeast);
    for (const { id, code, country } of known) {
      expect([id, code, countryOfRegion(id, code)]).toEqual([id, code, country]);
      expect([country, continentOf(country)]).not.toContain(undefined);
    }
  });
