/**
 * Counts refused sign-ins by address, and blocks an address with many for some time. Tokens cannot be guessed: the limit keeps
 * invented tokens from occupying PostgreSQL. The log and the audit log get failures with a known reason, the first failure of an
 * address, and the one that blocks it.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { audit } from '../db/audit.ts';
import type { Database } from '../db/connection/connect.ts';
import { isLostConnection } from '../db/connection/errors.ts';
import { lruOfEntries } from '../domain/lru.ts';
import type { Decider } from '../domain/operator.ts';
import { addressKey } from '../domain/servers/client-address.ts';

const MOST = 30;
const WINDOW_MS = 15 * 60_000;
const ADDRESSES = 20_000;
/** Most records of one process: failures from many addresses must not fill the audit log, whose rows are never deleted. */
const RECORDS_AN_HOUR = 60;
const HOUR_MS = 3_600_000;

export interface Refusal extends Pick<Decider, 'how'> {
  readonly address: string;
  /** The failed token. It counts once in a window: a scraper with an old token must not block its address. */
  readonly token?: string;
  readonly account?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>>;
}

interface Count {
  readonly failed: Set<string>;
  /** The end of the window (ms). */
  readonly until: number;
}

export class Refusals {
  readonly #db: Database | undefined;
  readonly #logger: Pick<Logger, 'warn'> | undefined;
  readonly #now: () => number;
  readonly #counts = lruOfEntries<string, Count>(ADDRESSES);
  #hour = { until: 0, records: 0 };
  #unrecorded = 0;

  /** @param db undefined in a reader, which only logs @param now milliseconds */
  constructor(db: Database | undefined, logger: Pick<Logger, 'warn'> | undefined, now: () => number) {
    this.#db = db;
    this.#logger = logger;
    this.#now = now;
  }

  /** Returns the seconds until a blocked address may try again, with a message; undefined if it may try now. */
  wait(address: string): { readonly seconds: number; readonly problem: string } | undefined {
    const count = this.#of(address);
    if (count.failed.size < MOST) return undefined;
    const seconds = this.#secondsUntil(count);
    const wait = seconds < 120 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
    return { seconds, problem: `Too many failed sign-ins from this address: try again in ${wait}.` };
  }

  async add(refusal: Refusal): Promise<void> {
    const { address, token = randomUUID(), details } = refusal;
    const count = this.#of(address);
    this.#counts.set(addressKey(address), count);
    const before = count.failed.size;
    const failures = count.failed.add(createHash('sha256').update(token).digest('base64')).size;
    if (failures === before || (failures !== 1 && failures !== MOST && details === undefined)) return;
    const locked = failures === MOST && { what: 'address', seconds: this.#secondsUntil(count) };
    await this.#record(refusal, { failures, ...details, ...(locked && { locked }) });
  }

  async #record({ how, address, account }: Refusal, details: Record<string, unknown>): Promise<void> {
    if (this.#now() >= this.#hour.until) this.#hour = { until: this.#now() + HOUR_MS, records: 0 };
    if (this.#hour.records >= RECORDS_AN_HOUR) {
      this.#unrecorded += 1;
      return;
    }
    this.#hour.records += 1;
    const facts = { ...details, ...(this.#unrecorded > 0 && { unrecorded: this.#unrecorded }) };
    this.#unrecorded = 0;
    this.#logger?.warn({ account, how, address, ...facts }, 'a sign-in to the operators’ pages was refused');
    if (this.#db === undefined) return;
    // The caller has proved no identity. "-" is no operator's name.
    const decider = { by: '-', how, address, reason: undefined };
    const subject = { kind: 'operator', id: account ?? '-' };
    await audit(this.#db, decider, { action: 'session.refused', subject, details: facts }).catch(
      (error: unknown) => {
        // The log has the record. The answer must not differ while PostgreSQL does not answer.
        if (!isLostConnection(error)) throw error;
      },
    );
  }

  #of(address: string): Count {
    const count = this.#counts.get(addressKey(address));
    if (count && count.until > this.#now()) return count;
    return { failed: new Set(), until: this.#now() + WINDOW_MS };
  }

  #secondsUntil({ until }: Count): number {
    return Math.ceil((until - this.#now()) / 1000);
  }
}
