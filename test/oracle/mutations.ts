/** Defects that the oracle must find. `--self-test` adds one at a time. */
import type { Kind } from './operations.ts';

export interface Mutation {
  readonly name: string;
  /** Path from the root of the product. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** Operations, in this order, that reveal it. Other histories do not run. */
  readonly having?: readonly Kind[];
}

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'a revoked token is accepted',
    file: 'src/snapshot/read/tokens.ts',
    find: 'isRevoked ||',
    replace: '',
  },
  {
    name: 'tokens of a deleted organization stay',
    file: 'src/db/organizations.ts',
    find: '.where(and(eq(tokens.organizationId, organization.id), isNull(tokens.revokedAt)))',
    replace: '.where(sql`false`)',
  },
  {
    name: 'clusters of all organizations are one document',
    file: 'src/snapshot/document/keys.ts',
    find: "case 'price-book':\n      return ",
    replace: "case 'price-book':\n      return (name.kind === 'clusters' && 'clusters:1') || ",
  },
  {
    name: 'lost entries are not noticed',
    file: 'src/snapshot/read/link.ts',
    find: 'this.#epoch += 1;',
    replace: '',
  },
  {
    name: 'a reader accepts old documents of the cache',
    file: 'src/snapshot/read/documents.ts',
    find: 'const atLeast = Math.max(version, flight.announced);',
    replace: 'const atLeast = 0;',
    having: ['remember cache', 'reprice', 'sync', 'cache goes back'],
  },
  {
    name: 'memory answers without confirmation',
    file: 'src/snapshot/read/consistency.ts',
    find: 'return now() - this.confirmedAt(read) <= maxAge;',
    replace: 'return true;',
  },
  {
    name: 'documents of the cache state the current time',
    file: 'src/snapshot/read/tiers.ts',
    find: 'timeBy(stamps.cache, id, document.sources)',
    replace: 'new Date().toISOString()',
    having: ['reprice', 'restart reader', 'sync'],
  },
  {
    name: 'searches miss publications',
    file: 'src/market/searchable.ts',
    find: 'this.#published.set(Number(regionId),',
    replace: 'new Map().set(Number(regionId),',
  },
  {
    name: 'the feed does not state that machines are withdrawn',
    file: 'src/features/feed/append-changes.ts',
    find: 'from shown full join stated on stated.key = shown.key',
    replace: 'from shown left join stated on stated.key = shown.key',
    having: ['withdraw'],
  },
  {
    name: 'documents of a dump state the current time',
    file: 'src/snapshot/read/memory.ts',
    find: 'const entry: Entry = { document, epoch: OF_DUMP, at, asOf };',
    replace:
      'const entry: Entry = { document, epoch: OF_DUMP, at: Date.now(), asOf: asOf && new Date().toISOString() };',
    having: ['start from disk', 'change cluster', 'reprice'],
  },
  {
    name: 'prices lose their last digits',
    file: 'src/snapshot/document/build.ts',
    find: 'price, ram_unit: ramUnit',
    replace: 'price: Math.fround(price), ram_unit: ramUnit',
  },
];
