/** Readers with all data in memory: the publisher's own functions build and encode the documents. */

import type { ClusterDocument } from '../../src/domain/cluster.ts';
import { type Grant, SCOPES, type Scope } from '../../src/domain/scope.ts';
import { newToken } from '../../src/domain/token.ts';
import { type SearchAnswers, searchAnswers } from '../../src/features/search/answers.ts';
import { emptyIndex, type RegionUpdate, updateIndex } from '../../src/market/catalogue-index.ts';
import { PriceBooks } from '../../src/market/price-books.ts';
import type {
  Answer,
  CatalogueReader,
  ClusterReader,
  EncodedBody,
  TokenReader,
} from '../../src/snapshot/document/answer.ts';
import { encodeBody } from '../../src/snapshot/document/body.ts';
import {
  clustersContent,
  type MachineRow,
  providersContent,
  regionContent,
} from '../../src/snapshot/document/build.ts';
import { ColumnsBuilder, readColumns } from '../../src/snapshot/document/columns.ts';
import type { Document } from '../../src/snapshot/document/document.ts';
import { type DocumentContent, encoding } from '../../src/snapshot/document/format.ts';

export const AS_OF = '2026-11-20T12:00:00Z';

const PROVIDER = { id: 5, name: 'Hetzner' };
const REGIONS = [
  { id: 3, name: 'Falkenstein', code: 'fsn1', machines: 3 },
  { id: 4, name: 'Nuremberg', code: 'nbg1', machines: 40 },
];

/** Organization 1 has two clusters, organization 2 one with a slug that 1 lacks, organization 3 none. */
export const CLUSTERS: Readonly<Record<number, readonly ClusterDocument[]>> = {
  1: [cluster('Cluster Test', 'cluster-test'), cluster('Größe – Süd', 'groesse-sued')],
  2: [cluster('Elsewhere', 'elsewhere')],
  3: [],
};

function cluster(name: string, slug: string): ClusterDocument {
  return {
    name,
    slug,
    region: { name: 'Falkenstein', code: 'fsn1' },
    provider: PROVIDER,
    status: 'Active',
    shards: 3,
    replicas: 1,
    user: { first_name: 'Zoë', last_name: 'Doe' },
    machine: { ram: 8, cpu: 2, id: 1, ram_unit: 'Decimal' },
    disks: [
      {
        type: { name: 'gp2', price: 0.00000000045, unit: 'Decimal' },
        size: 150,
        unit: 'GB',
        autoscaling: false,
      },
    ],
    created_at: '2022-02-14T10:11:26.567713',
  };
}

function rows(regionId: number, count: number): MachineRow[] {
  return Array.from({ length: count }, (_, i) => ({
    id: regionId * 100 + i,
    name: `cax${i + 1}1`,
    ram: 4 * (i + 1),
    cpu: 2 * (i + 1),
    price: 0.000103791666666667 * (i + 1),
    ramUnit: 'Decimal',
  }));
}

async function document(content: DocumentContent): Promise<Document> {
  const { document } = encoding(content);
  await document.body.compress();
  return document;
}

export async function memoryCatalogue(): Promise<CatalogueReader> {
  const providers = await document(
    providersContent(1, [{ ...PROVIDER, regions: REGIONS.map(plain) }], { sources: ['hetzner'] }),
  );
  const regions = new Map<number, Document>();
  for (const { machines, ...region } of REGIONS) {
    const content = regionContent({ ...region, version: 1, provider: PROVIDER }, rows(region.id, machines), {
      sources: ['hetzner'],
    });
    regions.set(region.id, await document(content));
  }
  const prices = await encodeBody(
    Buffer.from(JSON.stringify([{ price: 0.0001, from: '2026-03-01T04:17:02.114392Z', to: null }])),
  );
  const empty = await encodeBody(Buffer.from('[]'));
  const machine = (id: number) => regions.get(Math.floor(id / 100))?.slice(String(id));
  return {
    providers: async () => answer(providers.body),
    machines: async (providerId, regionId) =>
      answer((providerId === PROVIDER.id && regions.get(regionId)?.body) || empty),
    machine: async (id) => maybe(machine(id)),
    machinePrices: async (id) => maybe(machine(id) && prices),
  };
}

const plain = ({ id, name, code }: (typeof REGIONS)[number]) => ({ id, name, code });

/** Organizations without own prices. */
export const NO_BOOKS = new PriceBooks({
  documents: { get: () => ({ document: undefined, tier: 'memory', asOf: undefined }) },
});

export function memorySearch(): SearchAnswers {
  const facts = {
    architecture: 'arm64',
    generation: null,
    cpuKind: 'shared',
    localDisk: 40,
    network: null,
    includedTraffic: null,
    includedIpv4: null,
    orderableUntil: null,
    retiresAt: null,
  } as const;
  const updates = REGIONS.map(({ machines, ...region }): RegionUpdate => {
    const builder = new ColumnsBuilder({ ...region, version: 1, provider: PROVIDER });
    for (const row of rows(region.id, machines)) builder.add({ ...row, facts });
    const columns = readColumns(builder.content({ sources: [] }).body);
    if (!columns) throw new Error('unreachable: what was built can be read');
    const place = { region, provider: PROVIDER, sources: [], currency: 'USD' };
    return { ...place, version: 1, hash: String(region.id), columns };
  });
  const work = updateIndex(emptyIndex(), updates);
  let turn = work.next();
  while (!turn.done) turn = work.next();
  const index = turn.value;
  return searchAnswers({
    catalogue: { get: () => ({ index, tier: 'memory', asOf: () => AS_OF }) },
    books: NO_BOOKS,
  });
}

export async function memoryClusters(): Promise<ClusterReader> {
  const documents = new Map<number, Document>();
  for (const [id, clusters] of Object.entries(CLUSTERS)) {
    documents.set(
      Number(id),
      await document(clustersContent(Number(id), 1, clusters, { sources: ['clusters'] })),
    );
  }
  const empty = await encodeBody(Buffer.from('[]'));
  return {
    clusters: async (organizationId) => answer(documents.get(organizationId)?.body ?? empty),
    cluster: async (organizationId, slug) => maybe(documents.get(organizationId)?.slice(slug)),
  };
}

function answer(body: EncodedBody): Answer {
  return { body, tier: 'memory', asOf: AS_OF, currency: 'USD' };
}

const maybe = (body: EncodedBody | undefined): Answer | undefined => body && answer(body);

export interface MemoryTokens extends TokenReader {
  issue(options?: {
    organizationId?: number;
    scopes?: readonly Scope[];
    state?: 'good' | 'expired' | 'revoked';
  }): string;
  revoke(token: string): void;
}

export function memoryTokens(): MemoryTokens {
  const known = new Map<string, { grant: Grant; good: boolean }>();
  return {
    issue({ organizationId = 1, scopes = SCOPES, state = 'good' } = {}) {
      const token = newToken();
      known.set(token, {
        grant: { tokenId: known.size + 1, organizationId, scopes },
        good: state === 'good',
      });
      return token;
    },
    revoke(token) {
      const found = known.get(token);
      if (found) found.good = false;
    },
    async verify(token) {
      const found = known.get(token);
      return found?.good ? found.grant : undefined;
    },
  };
}
