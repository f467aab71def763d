import { CLUSTER_JSON } from '../../db/shown-rows.ts';
import { FACT_FIELDS, type MachineFacts } from '../../domain/machine-facts.ts';
import { hashOf } from './body.ts';
import { type MachineRow, providersContent, regionContent, tokenContent } from './build.ts';
import { ColumnsBuilder } from './build-columns.ts';
import { PROVIDER_JSON } from './load.ts';
import { BOOK_ENTRY_JSON } from './load-price-book.ts';

const REGION = { id: 1, code: 'c', name: 'n', version: 1, provider: { id: 1, name: 'p' } };
const MACHINE: MachineRow = { id: 1, name: 'm', ram: 1, cpu: 1, price: 1, ramUnit: 'Binary' };
const FACTS = Object.fromEntries(FACT_FIELDS.map((field) => [field, 1])) as unknown as MachineFacts;

function exampleColumns() {
  const columns = new ColumnsBuilder(REGION);
  columns.add({ ...MACHINE, facts: FACTS });
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
