/** What the API asks for, answered from documents. */
import { LRUCache } from 'lru-cache';
import type { Grant, TokenVerifier } from '../domain/grant.ts';
import { hashToken, SCOPES } from '../domain/token.ts';
import type { Answer, CatalogueReader, ClusterReader, EncodedBody } from './answer.ts';
import { Unavailable } from './answer.ts';
import { regionKey, type TokenRecord } from './build.ts';
import type { Documents, Found } from './documents.ts';
import { type Document, encodeBody, hashOf } from './format.ts';
import { loadMachinePrices } from './load.ts';

const EMPTY_BYTES = Buffer.from('[]');
const EMPTY_LIST: EncodedBody = {
  identity: EMPTY_BYTES,
  gzip: undefined,
  br: undefined,
  hash: hashOf(EMPTY_BYTES),
};

/** Price histories are read from Postgres and kept for this long (ms). */
const PRICES_TTL_MS = 5000;

interface HeldPrices {
  readonly body: EncodedBody;
  readonly readAt: number;
}

export function catalogueReader(documents: Documents, now: () => number = Date.now): CatalogueReader {
  const prices = new LRUCache<number, HeldPrices>({ max: 1000 });
  const priceReads = new Map<number, Promise<EncodedBody>>();

  function readPrices(id: number): Promise<EncodedBody> {
    let read = priceReads.get(id);
    if (!read) {
      const readAt = now();
      read = documents
        .postgres((sql) => loadMachinePrices(sql, id))
        .then((rows) => encodeBody(Buffer.from(JSON.stringify(rows))))
        .then((body) => {
          prices.set(id, { body, readAt });
          return body;
        })
        .finally(() => priceReads.delete(id));
      priceReads.set(id, read);
    }
    return read;
  }

  async function region(regionId: number): Promise<Found> {
    return documents.get({ kind: 'region', regionId });
  }

  async function answer(body: EncodedBody, found: Found): Promise<Answer> {
    return {
      body,
      tier: found.tier,
      asOf: await documents.verifiedAt(found.document?.sources ?? [], 'catalogue'),
    };
  }

  async function machine(id: number): Promise<Answer | undefined> {
    const regionId = await documents.regionOfMachine(id);
    if (regionId === undefined) return undefined;
    const found = await region(regionId);
    const body = found.document?.slice(String(id));
    return body && answer(body, found);
  }

  return {
    async providers() {
      const found = await documents.get({ kind: 'providers' });
      return answer(found.document?.body ?? EMPTY_LIST, found);
    },

    async machines(providerId, regionId) {
      // The list of providers tells at once what does not exist, so that made-up ids never reach Postgres.
      const listing = await documents.get({ kind: 'providers' });
      if (!listing.document?.has(regionKey(providerId, regionId))) return answer(EMPTY_LIST, listing);
      const found = await region(regionId);
      return answer(found.document?.body ?? EMPTY_LIST, found);
    },

    machine,

    async machinePrices(id) {
      const published = await machine(id);
      if (!published) return undefined;
      const held = prices.get(id);
      const age = held ? now() - held.readAt : Number.POSITIVE_INFINITY;
      if (held && age < PRICES_TTL_MS) return { body: held.body, tier: 'memory', asOf: published.asOf };
      try {
        return { body: await readPrices(id), tier: 'postgres', asOf: published.asOf };
      } catch (error) {
        if (!(error instanceof Unavailable) || !held || age > documents.staleLimitMs) throw error;
        return { body: held.body, tier: 'memory', asOf: published.asOf };
      }
    },
  };
}

export function clusterReader(documents: Documents): ClusterReader {
  async function answer(body: EncodedBody, found: Found): Promise<Answer> {
    return {
      body,
      tier: found.tier,
      asOf: await documents.verifiedAt(found.document?.sources ?? [], 'clusters'),
    };
  }

  return {
    async clusters(organizationId) {
      const found = await documents.get({ kind: 'clusters', organizationId });
      return answer(found.document?.body ?? EMPTY_LIST, found);
    },

    async cluster(organizationId, slug) {
      const found = await documents.get({ kind: 'clusters', organizationId });
      const body = found.document?.slice(slug);
      return body && answer(body, found);
    },
  };
}

/** A token's record is a document like any other, so that a revocation arrives the way a new price does. */
export function tokenVerifier(documents: Documents, now: () => number = Date.now): TokenVerifier {
  const parsed = new WeakMap<Document, { grant: Grant; record: TokenRecord }>();
  return {
    async verify(token) {
      const { document } = await documents.get({ kind: 'token', hash: hashToken(token) });
      if (!document) return undefined;
      let known = parsed.get(document);
      if (!known) {
        const record = JSON.parse(document.body.identity.toString()) as TokenRecord;
        known = {
          record,
          grant: {
            tokenId: record.id,
            organizationId: record.organizationId,
            scopes: SCOPES.filter((scope) => record.scopes.includes(scope)),
          },
        };
        parsed.set(document, known);
      }
      const { record, grant } = known;
      if (record.revoked || (record.expiresAt !== null && record.expiresAt <= now())) return undefined;
      return grant;
    },
  };
}
