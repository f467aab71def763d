import { LRUCache } from 'lru-cache';
import { steadyNow } from '../../domain/clock.ts';
import {
  type Answer,
  type CatalogueReader,
  type ClusterReader,
  type EncodedBody,
  type MaybePromise,
  Unavailable,
  type Validity,
  whenThere,
} from '../document/answer.ts';
import { encodeBody, jsonBody } from '../document/body.ts';
import type { Document } from '../document/document.ts';
import { placeOfRegion } from '../document/keys.ts';
import { loadMachinePrices } from '../document/load.ts';
import { BYTES_PER_DOCUMENT } from './budget.ts';
import type { Documents } from './documents.ts';
import { boundedBy } from './freshness.ts';
import type { TieredResult } from './tiers.ts';

const PROVIDERS = { kind: 'providers' } as const;
const EMPTY_LIST = jsonBody([]);

/** Price histories come from Postgres, and are cached for this long (ms). */
const PRICES_TTL_MS = 5000;

/** A price history. Its `asOf` is the machine's before the read: the machine's document may be newer. */
interface Prices extends Pick<Answer, 'body' | 'currency' | 'asOf'> {
  readonly readAt: number;
}

/** Returns a function that finds the provider of a region in the list of providers. The last list is parsed once. */
function providerFinder() {
  let parsed: Document | undefined;
  let providers: ReadonlyMap<number, number> = new Map();
  return (listing: Document | undefined, regionId: number): number | undefined => {
    if (listing !== parsed) {
      const places = listing?.keys().map(placeOfRegion) ?? [];
      providers = new Map(places.map((place) => [place.regionId, place.providerId]));
      parsed = listing;
    }
    return providers.get(regionId);
  };
}

function bodySize({ identity, gzip, br }: EncodedBody): number {
  return identity.length + (gzip?.length ?? 0) + (br?.length ?? 0);
}

/** Makes answers from results. The last result has the body, the others led to it. */
function answerer(documents: Documents) {
  function validityOf(results: readonly TieredResult[], id: string): Validity | undefined {
    const ids = results.flatMap(({ invalidatedBy = [] }) => invalidatedBy);
    return ids.length === results.length ? { documents: ids, asOf: () => documents.asOf(id) } : undefined;
  }

  return (body: EncodedBody, ...results: [...TieredResult[], TieredResult]): Answer => {
    const { tier, document, knownAt, asOf, invalidatedBy: id } = results.at(-1) as TieredResult;
    const validity = id === undefined ? undefined : validityOf(results, id);
    return { body, tier, asOf: boundedBy(knownAt, asOf), currency: document?.currency, validity };
  };
}

export interface CatalogueReaderOptions {
  readonly now?: () => number;
  readonly pricesLimit: number;
  /** Milliseconds for which a history answers when Postgres does not. */
  readonly staleLimitMs: number;
}

export function catalogueReader(
  documents: Documents,
  { now = steadyNow, pricesLimit, staleLimitMs }: CatalogueReaderOptions,
): CatalogueReader {
  const answer = answerer(documents);
  const providerOf = providerFinder();
  const prices = new LRUCache<number, Prices>({
    maxSize: Math.max(1, Math.floor(pricesLimit)),
    sizeCalculation: ({ body }) => bodySize(body) + BYTES_PER_DOCUMENT,
  });
  const priceReads = new Map<number, Promise<Prices>>();

  async function readPrices(
    id: number,
    asOf: string | undefined,
    organizationId: number | undefined,
  ): Promise<Prices> {
    const readAt = now();
    const regionId = await documents.regionOfMachine(id, organizationId);
    const shown = regionId === undefined ? undefined : (await region(regionId)).document?.version;
    const { rows, currency } = await documents.postgres((sql) => loadMachinePrices(sql, id), {
      // The history must have the price of the machine's list.
      check: ({ version }) => shown !== undefined && version !== undefined && version >= shown,
      organizationId,
    });
    const found = { body: await encodeBody(Buffer.from(JSON.stringify(rows))), currency, readAt, asOf };
    prices.set(id, found);
    return found;
  }

  function freshPrices(
    id: number,
    asOf: string | undefined,
    organizationId: number | undefined,
  ): Promise<Prices> {
    const reading =
      priceReads.get(id) ?? readPrices(id, asOf, organizationId).finally(() => priceReads.delete(id));
    priceReads.set(id, reading);
    return reading;
  }

  const region = (regionId: number) => documents.get({ kind: 'region', regionId });

  function machine(id: number, organizationId?: number): MaybePromise<Answer | undefined> {
    return whenThere(documents.regionOfMachine(id, organizationId), (regionId) => {
      if (regionId === undefined) return undefined;
      return whenThere(region(regionId), (found) => {
        const body = found.document?.slice(String(id));
        return body && answer(body, found);
      });
    });
  }

  return {
    providers: () =>
      whenThere(documents.get(PROVIDERS), (found) => answer(found.document?.body ?? EMPTY_LIST, found)),

    machines: (providerId, regionId) =>
      // The list of providers has the keys of all regions: requests for invented ids do not reach Postgres.
      whenThere(documents.get(PROVIDERS), (listing) => {
        if (providerOf(listing.document, regionId) !== providerId) return answer(EMPTY_LIST, listing);
        return whenThere(region(regionId), (found) =>
          answer(found.document?.body ?? EMPTY_LIST, listing, found),
        );
      }),

    machine,

    async machinePrices(id, organizationId) {
      const published = await machine(id, organizationId);
      if (!published) return undefined;
      const cached = prices.get(id);
      const age = cached ? now() - cached.readAt : Number.POSITIVE_INFINITY;
      if (cached && age < PRICES_TTL_MS) return pricesAnswer(cached, 'memory');
      try {
        return pricesAnswer(await freshPrices(id, published.asOf, organizationId), 'postgres');
      } catch (error) {
        if (!(error instanceof Unavailable) || !cached || age > staleLimitMs) throw error;
        return pricesAnswer(cached, 'memory');
      }
    },
  };
}

function pricesAnswer({ body, currency, asOf }: Prices, tier: Answer['tier']): Answer {
  return { body, currency, tier, asOf };
}

export function clusterReader(documents: Documents): ClusterReader {
  const answer = answerer(documents);
  const clusters = (organizationId: number) => documents.get({ kind: 'clusters', organizationId });
  return {
    clusters: (organizationId) =>
      whenThere(clusters(organizationId), (found) => answer(found.document?.body ?? EMPTY_LIST, found)),

    cluster: (organizationId, slug) =>
      whenThere(clusters(organizationId), (found) => {
        const body = found.document?.slice(slug);
        return body && answer(body, found);
      }),
  };
}
