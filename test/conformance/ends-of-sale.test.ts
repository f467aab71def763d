/** Each adapter whose source announces ends: a machine is published until the date, and no longer from the date on. */
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { adapter as azure } from '../../src/sources/providers/azure.ts';
import { adapter as gcp } from '../../src/sources/providers/gcp.ts';
import { adapter as hetzner } from '../../src/sources/providers/hetzner.ts';
import { adapter as priceList } from '../../src/sources/providers/price-list.ts';
import { adapter as scaleway } from '../../src/sources/providers/scaleway.ts';
import type { AnyCatalogueAdapter, CatalogueItem } from '../../src/sources/source.ts';
import { LAX, openScene, type Scene } from '../sync/scene.ts';
import { catalogueCase as ofAzure } from './azure.ts';
import type { CatalogueCase, Json } from './catalogue-case.ts';
import { read } from './catalogue-reading.ts';
import { catalogueCase as ofGcp } from './gcp.ts';
import { catalogueCase as ofHetzner } from './hetzner.ts';
import { catalogueCase as ofPriceList } from './price-list.ts';
import { catalogueCase as ofScaleway } from './scaleway.ts';

interface Dated {
  readonly adapter: AnyCatalogueAdapter;
  readonly own: CatalogueCase;
  /** A machine that the case offers. */
  readonly name: string;
  readonly regionCode: string;
  readonly column: 'orderable_until' | 'retires_at';
  /** Returns the value to put in place of an object of the pages; undefined to keep it. */
  readonly edit: (row: { readonly [field: string]: Json }, date: string) => Json | undefined;
  /** How the source writes a day of the form 2026-03-01. */
  readonly written?: (day: string) => string;
  readonly problem: RegExp;
}

const midnight = (day: string) => `${day}T00:00:00+00:00`;

const DATED: readonly Dated[] = [
  {
    adapter: hetzner,
    own: ofHetzner,
    name: 'cx22',
    regionCode: 'fsn1',
    column: 'orderable_until',
    edit: (row, date) =>
      row.name === 'cx22'
        ? { ...row, deprecation: { announced: '2025-10-16T08:00:00+00:00', unavailable_after: date } }
        : undefined,
    written: midnight,
    problem: /^deprecation\.unavailable_after must be a date such as 2027-01-31; it is "soon"$/,
  },
  {
    adapter: azure,
    own: ofAzure,
    name: 'Standard_D2s_v5',
    regionCode: 'eastus',
    column: 'retires_at',
    edit: (row, date) =>
      row.name === 'Standard_D2s_v5' && Array.isArray(row.capabilities)
        ? { ...row, capabilities: [...row.capabilities, { name: 'RetirementDateUtc', value: date }] }
        : undefined,
    written: (day) => day.replace(/^(\d+)-(\d+)-(\d+)$/, '$2/$3/$1'),
    problem: /^capabilities\.RetirementDateUtc must be a date such as 03\/31\/2027; it is "soon"$/,
  },
  {
    adapter: gcp,
    own: ofGcp,
    name: 'e2-standard-2',
    regionCode: 'us-central1',
    column: 'orderable_until',
    edit: (row, date) =>
      row.name === 'e2-standard-2'
        ? { ...row, deprecated: { state: 'DEPRECATED', obsolete: date } }
        : undefined,
    written: midnight,
    problem: /^deprecated\.obsolete must be a date such as 2027-01-31; it is "soon"$/,
  },
  {
    adapter: scaleway,
    own: ofScaleway,
    name: 'START1-S',
    regionCode: 'fr-par-1',
    column: 'retires_at',
    edit: (row, date) => (row.end_of_life_at === undefined ? undefined : { ...row, end_of_life_at: date }),
    written: midnight,
    problem: /^end_of_life_at must be a date such as 2027-01-31; it is "soon"$/,
  },
  {
    adapter: priceList,
    own: ofPriceList,
    name: 'm.large',
    regionCode: 'dc1',
    column: 'orderable_until',
    edit: (row, date) => (row.name === 'm.large' ? { ...row, orderable_until: date } : undefined),
    problem: /orderable_until must be a date such as 2027-01-31; it is "soon"$/,
  },
];

function edited(json: Json, edit: (row: { readonly [field: string]: Json }) => Json | undefined): Json {
  if (Array.isArray(json)) return json.map((each) => edited(each, edit));
  if (typeof json !== 'object' || json === null) return json;
  const fields = Object.entries(json).map(([key, value]) => [key, edited(value, edit)] as const);
  return edit(json) ?? Object.fromEntries(fields);
}

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(() => scene.reset());

it.each(DATED)('$adapter.id', async ({ adapter, own, name, regionCode, column, edit, written, problem }) => {
  expect(own.now.toISOString()).toBe('2026-03-01T00:00:00.000Z');
  /** The stored machine at the beginning of 1 March 2026, after one run in an empty database. */
  const stored = async (day: string | undefined) => {
    await scene.reset();
    const date = day === undefined || !/^\d/.test(day) ? day : (written?.(day) ?? day);
    const found = await read(adapter, own, (page) =>
      date === undefined ? undefined : { json: edited(page.json, (row) => edit(row, date)) },
    );
    const items: CatalogueItem[] = [
      ...Object.entries(found.regions).map(([code, text]) => ({ kind: 'region', code, name: text }) as const),
      ...found.offers.map((offer) => ({ kind: 'offer', offer }) as const),
    ];
    const run = await scene.catalogue(items, {
      limits: LAX,
      now: () => own.now,
      rates: { EUR: '1.1', CHF: '1.2' },
    });
    expect(run.outcome).toBe('changed');
    const [machine] = await scene.sql`
      select m.excluded_reason as excluded, ${scene.sql(`m.${column}`)} as "end" from machines m
      join regions r on r.id = m.region_id where m.name = ${name} and r.code = ${regionCode}`;
    const reasons = found.rejected.filter(
      (row) => row.name === name && (row.regionCode ?? regionCode) === regionCode,
    );
    return machine ?? [...new Set(reasons.map(({ reason }) => reason))];
  };
  const instant = (day: string) => new Date(`${day}T00:00:00Z`);
  expect(await stored('2026-02-28')).toEqual({ excluded: 'discontinued', end: instant('2026-02-28') });
  expect(await stored('2026-03-01')).toEqual({ excluded: 'discontinued', end: instant('2026-03-01') });
  expect(await stored('2026-03-02')).toEqual({ excluded: null, end: instant('2026-03-02') });
  expect(await stored('2031-12-31')).toEqual({ excluded: null, end: instant('2031-12-31') });
  expect(await stored('9999-01-01')).toEqual({ excluded: null, end: null });
  // The row keeps its last good values, and an operator sees why.
  expect(await stored('soon')).toEqual([expect.stringMatching(problem)]);
});
