/** Documents of one format have equal bodies: readers take a stored body with the version that they want as it is. */
import { expect, it } from 'vitest';
import { CLUSTER_JSON } from '../../../src/db/published-rows.ts';
import type { PublishedPlan } from '../../../src/domain/database-plan.ts';
import { FACT_FIELDS, type MachineFacts } from '../../../src/domain/machine-facts.ts';
import { REGION_ITEMS } from '../../../src/domain/prices/region-price.ts';
import { type StoredTerms, TERMS } from '../../../src/domain/prices/term.ts';
import { hashOf } from '../../../src/snapshot/document/body.ts';
import {
  type MachineRow,
  providersContent,
  regionContent,
  tokenContent,
} from '../../../src/snapshot/document/build.ts';
import { ColumnsBuilder } from '../../../src/snapshot/document/columns.ts';
import { FORMAT } from '../../../src/snapshot/document/format.ts';
import { BOOK_ENTRY_JSON, PROVIDER_JSON } from '../../../src/snapshot/document/load.ts';

const REGION = { id: 1, code: 'c', name: 'n', country: 'XX', version: 1, provider: { id: 1, name: 'p' } };
const MACHINE: MachineRow = { id: 1, name: 'm', ram: 1, cpu: 1, price: 1, ramUnit: 'Binary' };
const FACTS = Object.fromEntries(FACT_FIELDS.map((field) => [field, 1])) as unknown as MachineFacts;

const SOURCE = { price: { amount: '1', per: 'hour', currency: 'EUR' } } as const;
const TERMS_OF_MACHINE: StoredTerms = {
  terms: Object.fromEntries(TERMS.map((term) => [term, { price: '1', upfront: '1', source: SOURCE }])),
  monthly_cap: { price: '1', source: { amount: '1', currency: 'EUR' } },
};
const PRICES = REGION_ITEMS.map((item) => ({
  item,
  name: 'n',
  isDefault: true,
  unit: 'GB' as const,
  tiers: [{ from: '0', price: '1' }],
  source: { tiers: [{ from: '0', amount: '1' }], currency: 'EUR', per: 'hour' as const },
}));

const PLAN_FACTS = { nodes: 1, cpu: 1, ram: 1, ramUnit: 'Binary', storage: 1 } as const;
const PLAN: PublishedPlan = { id: 1, engine: 'e', name: 'n', ...PLAN_FACTS, price: '1' };

function exampleColumns() {
  const columns = new ColumnsBuilder(REGION, PRICES, [PLAN]);
  columns.add({ ...MACHINE, facts: FACTS, soldOut: false, terms: TERMS_OF_MACHINE, termsSince: 1 });
  columns.add({ ...MACHINE, facts: FACTS, soldOut: true, terms: null, termsSince: null });
  return columns.content({ sources: [] });
}

/** Digests of example bodies, and of the SQL that builds bodies. */
const digests = () => ({
  region: digestOf(regionContent(REGION, [MACHINE], { sources: [] }).body),
  columns: digestOf(exampleColumns().body),
  providers: digestOf(providersContent(1, [{ id: 1, name: 'p', regions: [REGION] }], { sources: [] }).body),
  token: digestOf(
    tokenContent('', 1, { id: 1, organizationId: 1, scopes: ['s'], expiresAt: 1, revoked: false }).body,
  ),
  clusters: digestOf(CLUSTER_JSON),
  provider: digestOf(PROVIDER_JSON),
  priceBook: digestOf(BOOK_ENTRY_JSON),
});

const digestOf = (body: Buffer | string) => hashOf(Buffer.from(body));

// If this fails because a body has changed: raise FORMAT, unless no release has it, and replace the digests.
it('a changed body needs another format', () => {
  expect({ FORMAT, ...digests() }).toEqual({
    FORMAT: 'FB2',
    region: '1Lx7Q0MxNq3UJIBeeKauvI',
    columns: 'cftTVPhILnW11jElNq6R_0',
    providers: 'wt_U35sOPe8UGP2OlE3SWF',
    token: '3sAcXueqccwP2eBUE0t2BE',
    clusters: 'tFHCDB6jAh_KZ9m6aa_nkh',
    provider: 'ktgfEzVMf5qyftD5nMlEIh',
    priceBook: 'SeOXobTXZZDE8eH3ZLyN87',
  });
});
