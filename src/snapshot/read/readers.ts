/** What the API asks for, answered from documents. */
import { LRUCache } from 'lru-cache';
import type { Grant } from '../../domain/grant.ts';
import { hashToken, SCOPES } from '../../domain/token.ts';
import type {
  Answer,
  CatalogueReader,
  ClusterReader,
  EncodedBody,
  HeldAnswer,
  TokenReader,
} from '../document/answer.ts';
import { Unavailable } from '../document/answer.ts';
import { encodeBody, hashOf } from '../document/body.ts';
import { regionKey, type TokenRecord } from '../document/build.ts';
import type { Document } from '../document/document.ts';
import { type DocumentName, documentId } from '../document/keys.ts';
import { loadMachinePrices } from '../document/load.ts';
import type { Documents } from './documents.ts';
import { ForgettableAnswers } from './remembered.ts';
import type { Found } from './tiered-read.ts';

const PROVIDERS = { kind: 'providers' } as const;
const EMPTY_BYTES = Buffer.from('[]');
const EMPTY_LIST: EncodedBody = {
  identity: EMPTY_BYTES,
  gzip: undefined,
  br: undefined,
  hash: hashOf(EMPTY_BYTES),
};

/** Price histories are read from Postgres and kept for this long (ms). */
const PRICES_TTL_MS = 5000;

/** Bytes that a history costs beside its own. */
const PRICES_OVERHEAD = 600;

interface ReadPrices {
  readonly body: EncodedBody;
  readonly currency: string | undefined;
}

interface HeldPrices extends ReadPrices {
  readonly readAt: number;
}

function bodySize({ identity, gzip, br }: EncodedBody): number {
  return identity.length + (gzip?.length ?? 0) + (br?.length ?? 0);
}

/** Answers with a document, or an element of it, as old as its sources say. */
function answerer(documents: Documents, kind: 'catalogue' | 'clusters') {
  return (body: EncodedBody, { tier, document }: Found): Answer | Promise<Answer> => {
    const asOf = documents.verifiedAt(document?.sources ?? [], kind);
    const currency = document?.currency;
    if (asOf instanceof Promise) return asOf.then((time) => ({ body, tier, asOf: time, currency }));
    return { body, tier, asOf, currency };
  };
}

export function catalogueReader(documents: Documents, now: () => number = Date.now): CatalogueReader {
  const answer = answerer(documents, 'catalogue');
  const prices = new LRUCache<number, HeldPrices>({
    maxSize: Math.max(1, Math.floor(documents.budget.prices)),
    sizeCalculation: ({ body }) => bodySize(body) + PRICES_OVERHEAD,
  });
  const priceReads = new Map<number, Promise<ReadPrices>>();

  function readPrices(id: number): Promise<ReadPrices> {
    let read = priceReads.get(id);
    if (!read) {
      const readAt = now();
      read = documents
        .postgres((sql) => loadMachinePrices(sql, id))
        .then(async ({ rows, currency }) => {
          const read = { body: await encodeBody(Buffer.from(JSON.stringify(rows))), currency };
          prices.set(id, { ...read, readAt });
          return read;
        })
        .finally(() => priceReads.delete(id));
      priceReads.set(id, read);
    }
    return read;
  }

  const region = (regionId: number) => documents.get({ kind: 'region', regionId });

  async function machine(id: number): Promise<Answer | undefined> {
    const regionId = await documents.regionOfMachine(id);
    if (regionId === undefined) return undefined;
    const found = await region(regionId);
    const body = found.document?.slice(String(id));
    return body && answer(body, found);
  }

  return {
    async providers() {
      const found = await documents.get(PROVIDERS);
      return answer(found.document?.body ?? EMPTY_LIST, found);
    },

    async machines(providerId, regionId) {
      // The list of providers tells at once what does not exist, so that made-up ids never reach Postgres.
      const listing = await documents.get(PROVIDERS);
      if (!listing.document?.has(regionKey(providerId, regionId))) return answer(EMPTY_LIST, listing);
      const found = await region(regionId);
      return answer(found.document?.body ?? EMPTY_LIST, found);
    },

    machine,

    held: {
      remembered: () => documents.whileRight(new ForgettableAnswers(documents.budget.answers)),

      providers: () => hold(documents, documents.peek(PROVIDERS), undefined, 'catalogue'),

      machines(providerId, regionId) {
        const document = documents.peek({ kind: 'region', regionId });
        if (!document || !documents.peek(PROVIDERS)?.has(regionKey(providerId, regionId))) return undefined;
        return hold(documents, document, undefined, 'catalogue');
      },

      machine(id) {
        const regionId = documents.peekRegionOfMachine(id);
        if (regionId === undefined) return undefined;
        return hold(documents, documents.peek({ kind: 'region', regionId }), String(id), 'catalogue');
      },
    },

    async machinePrices(id) {
      const published = await machine(id);
      if (!published) return undefined;
      const { asOf } = published;
      const held = prices.get(id);
      const fromMemory = ({ body, currency }: HeldPrices): Answer => ({
        body,
        tier: 'memory',
        asOf,
        currency,
      });
      const age = held ? now() - held.readAt : Number.POSITIVE_INFINITY;
      if (held && age < PRICES_TTL_MS) return fromMemory(held);
      try {
        return { ...(await readPrices(id)), tier: 'postgres', asOf };
      } catch (error) {
        if (!(error instanceof Unavailable) || !held || age > documents.staleLimitMs) throw error;
        return fromMemory(held);
      }
    },
  };
}

export function clusterReader(documents: Documents): ClusterReader {
  const answer = answerer(documents, 'clusters');
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

    held: {
      remembered: () => documents.whileRight(new ForgettableAnswers(documents.budget.answers)),

      clusters: (organizationId) =>
        hold(documents, documents.peek({ kind: 'clusters', organizationId }), undefined, 'clusters'),

      cluster: (organizationId, slug) =>
        hold(documents, documents.peek({ kind: 'clusters', organizationId }), slug, 'clusters'),
    },
  };
}

/** What can be said at once of a document, or of one of its elements. */
function hold(
  documents: Documents,
  document: Document | undefined,
  key: string | undefined,
  kind: 'catalogue' | 'clusters',
): HeldAnswer | undefined {
  const { verification } = documents;
  const { state } = verification;
  if (!document || state === 0) return undefined;
  return document.held(key, state, () => verification.known(document.sources, kind));
}

/** A token as it was presented, beside the document that vouches for it. */
interface PresentedToken {
  readonly name: DocumentName;
  readonly id: string;
  readonly document: Document;
  readonly record: TokenRecord;
  readonly grant: Grant;
  /** When it was last found that memory holds this very document, by the count of what memory has lost since. */
  foundAt: number;
}

const NEVER = -1;

/** Bytes that a presented token takes, with a document that memory may have let go. */
const PRESENTED_SIZE = 1600;

export interface TokenVerifierOptions {
  readonly now?: () => number;
  /** Hears of each token that is accepted, at each request; it must cost next to nothing. */
  readonly used?: (tokenId: number) => void;
}

/**
 * A token's record is a document like any other, so that a revocation arrives the way a new price does.
 *
 * Tokens that were accepted are remembered as they were presented, so that the next request with one costs no
 * SHA-256; but it is the document in memory that lets it pass, and only while it is the very same one.
 */
export function tokenVerifier(
  documents: Documents,
  { now = Date.now, used = () => {} }: TokenVerifierOptions = {},
): TokenReader {
  // Forgotten all at once when there are too many: to make them again costs a SHA-256 each, to keep them in order costs
  // as much as the rest of a look-up.
  const presented = new Map<string, PresentedToken>();
  const presentedAtMost = Math.max(16, Math.floor(documents.budget.presentedTokens / PRESENTED_SIZE));
  const parsed = new WeakMap<Document, PresentedToken>();
  let losses = 0;
  documents.whileRight({
    forget() {
      losses += 1;
    },
  });

  function accept({ record, grant }: PresentedToken): Grant | undefined {
    if (record.revoked || (record.expiresAt !== null && record.expiresAt <= now())) return undefined;
    used(grant.tokenId);
    return grant;
  }

  function held(token: string): Grant | undefined {
    const known = presented.get(token);
    if (!known) return undefined;
    if (known.foundAt !== losses || !documents.isLinked) {
      if (documents.peek(known.name, known.id) !== known.document) return undefined;
      known.foundAt = losses;
    }
    return accept(known);
  }

  return {
    held,

    async verify(token, address) {
      const granted = held(token);
      if (granted) return granted;
      const name = { kind: 'token', hash: hashToken(token) } as const;
      const { document } = await documents.get(name, address);
      if (!document) return undefined;
      let known = parsed.get(document);
      if (!known) {
        known = presentedToken(name, document);
        parsed.set(document, known);
      }
      const grant = accept(known);
      if (!grant) presented.delete(token);
      else {
        if (presented.size >= presentedAtMost) presented.clear();
        presented.set(token, known);
      }
      return grant;
    },
  };
}

function presentedToken(name: DocumentName, document: Document): PresentedToken {
  const record = JSON.parse(document.body.identity.toString()) as TokenRecord;
  return {
    name,
    id: documentId(name),
    document,
    record,
    foundAt: NEVER,
    grant: {
      tokenId: record.id,
      organizationId: record.organizationId,
      scopes: SCOPES.filter((scope) => record.scopes.includes(scope)),
    },
  };
}
