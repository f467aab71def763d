import { CLUSTER_JSON } from '../../db/shown-rows.ts';
import type { PublishedPlan } from '../../domain/database-plan.ts';
import { FACT_FIELDS, type MachineFacts } from '../../domain/machine-facts.ts';
import { REGION_ITEMS } from '../../domain/prices/region-price.ts';
import { type StoredTerms, TERMS } from '../../domain/prices/term.ts';
import { hashOf } from './body.ts';
import { type MachineRow, providersContent, regionContent, tokenContent } from './build.ts';
import { ColumnsBuilder } from './build-columns.ts';
import { PROVIDER_JSON } from './load.ts';
import { BOOK_ENTRY_JSON } from './price-book.ts';

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
  columns.add({ ...MACHINE, facts: FACTS, terms: TERMS_OF_MACHINE, termsSince: 1 });
  columns.add({ ...MACHINE, facts: FACTS, soldOut: true });
  return columns.content({ sources: [] });
}

/**
 * Digest of example bodies, and of the SQL that builds bodies. After a change, the publisher raises all versions, so that every
 * document is published again.
 */
export const BODY_FORMAT = hashOf(
  Buffer.concat([
    ...[
      regionContent(REGION, [MACHINE], { sources: [] }),
      exampleColumns(),
      providersContent(1, [{ id: 1, name: 'p', regions: [REGION] }], { sources: [] }),
      tokenContent('', 1, { id: 1, organizationId: 1, scopes: ['s'], expiresAt: 1, revoked: false }),
    ].map(({ body }) => body),
    Buffer.from(CLUSTER_JSON + PROVIDER_JSON + BOOK_ENTRY_JSON),
  ]),
);
