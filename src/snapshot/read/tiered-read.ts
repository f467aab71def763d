import type { Tier } from '../document/answer.ts';
import type { Document } from '../document/document.ts';
import { decodeDocument, encoding, HEADER_LENGTH, parseHeader } from '../document/format.ts';
import type { CacheKeys, DocumentName } from '../document/keys.ts';
import { loadContent, loadVersion } from '../document/load.ts';
import type { CacheLink } from './cache-subscription.ts';
import { GatheredReads } from './mget-batcher.ts';
import type { PostgresReads } from './postgres-reads.ts';
import { Gate } from './semaphore.ts';
import { type UnknownTokenLimits, UnknownTokens } from './unknown-tokens.ts';

/** A document, or the knowledge that there is none, and the tier that answered. */
export interface Found {
  readonly document: Document | undefined;
  readonly tier: Tier;
}

export interface TiersOptions {
  readonly link: CacheLink;
  readonly postgres: PostgresReads;
  readonly now: () => number;
  /** Lookups of tokens in Postgres at once. */
  readonly tokenReads: number;
  /** Milliseconds that one of them may wait for its turn. */
  readonly tokenDeadlineMs: number;
  readonly unknownTokens: UnknownTokenLimits;
}

/** The tiers behind memory: the cache, then Postgres, whose answer is offered back to the cache. */
export class Tiers {
  readonly #link: CacheLink;
  readonly #cached: GatheredReads;
  readonly #postgres: PostgresReads;
  readonly #unknownTokens: UnknownTokens;
  readonly #tokenReads: Gate;

  constructor({ link, postgres, now, tokenReads, tokenDeadlineMs, unknownTokens }: TiersOptions) {
    this.#link = link;
    this.#cached = new GatheredReads(link);
    this.#postgres = postgres;
    this.#unknownTokens = new UnknownTokens(unknownTokens, now);
    this.#tokenReads = new Gate({
      atOnce: tokenReads,
      waitingAtMost: tokenReads * 16,
      deadlineMs: tokenDeadlineMs,
    });
  }

  /**
   * What memory has, if nothing newer is there, else what is.
   * @param held what memory has
   * @param address of whoever presents a token, see `UnknownTokens`
   * @throws Unavailable
   */
  async read(
    keys: CacheKeys,
    name: DocumentName,
    held: Document | undefined,
    address: string | undefined,
  ): Promise<Found> {
    const key = keys.document(name);
    if (held) {
      const version = await this.#cachedVersion(key);
      if (version === held.version) return { document: held, tier: 'memory' };
      // An older one than was given already: the cache has lost something, and only Postgres knows what is true.
      if (version === undefined || version < held.version)
        return this.#fromPostgres(keys, name, held, address);
    }
    const value = await this.#cached.read(key);
    const document = value ? decodeDocument(name, ownBytes(value)) : undefined;
    if (!document || document.version < (held?.version ?? 0))
      return this.#fromPostgres(keys, name, held, address);
    return { document, tier: 'redis' };
  }

  async #cachedVersion(key: string): Promise<number | undefined> {
    const header = await this.#link.ask((redis) => redis.getrangeBuffer(key, 0, HEADER_LENGTH - 1));
    return header && parseHeader(header)?.version;
  }

  async #fromPostgres(
    keys: CacheKeys,
    name: DocumentName,
    held: Document | undefined,
    address: string | undefined,
  ): Promise<Found> {
    if (held) {
      const version = await this.#postgres.run((sql) => loadVersion(sql, name));
      if (version === held.version) return { document: held, tier: 'memory' };
    }
    const load = () =>
      this.#postgres.run(async (sql) => {
        const content = await loadContent(sql, name);
        return content && encoding(content);
      });
    const encoded =
      name.kind === 'token' && !held
        ? await this.#unknownTokens.ask(address, () => this.#tokenReads.run(load))
        : await load();
    if (!encoded) return { document: undefined, tier: 'postgres' };
    const { document } = encoded;
    // Nobody waits for the codings who has not asked for one.
    this.#link.writeBack(keys, name, document.version, () => encoded.value());
    return { document, tier: 'postgres' };
  }
}

/** Bytes that keep nothing else alive: a reply of the cache may be a view of all that came in one packet. */
function ownBytes(value: Buffer): Buffer {
  if (value.buffer.byteLength <= value.length * 1.25) return value;
  const own = Buffer.allocUnsafeSlow(value.length);
  value.copy(own);
  return own;
}
