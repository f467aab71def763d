/** Prices of machines that no document has: unpublished ones, and past ones. */
import { type PricedMachine, pricedMachines } from '../../db/prices/costs.ts';
import { lruOfEntries } from '../../domain/lru.ts';
import { Unavailable } from '../../snapshot/document/answer.ts';
import type { Documents } from '../../snapshot/read/documents.ts';

/** Prices of PostgreSQL are cached for this long (ms), as price histories are. */
const STORED_TTL_MS = 5000;
const MACHINES_AT_MOST = 20_000;

interface Entry {
  readonly readAt: number;
  /** Null: the organization cannot see such a machine. */
  readonly machine: PricedMachine | null;
}

/** By machine id. An unchanged machine is the same object in each result. */
export type StoredMachines = ReadonlyMap<number, PricedMachine>;

export const NO_MACHINES: StoredMachines = new Map();

export interface StoredOptions {
  readonly documents: Pick<Documents, 'postgres'>;
  readonly now: () => number;
  /** Milliseconds for which a price answers when Postgres does not. */
  readonly staleLimitMs: number;
}

export class StoredMachineReader {
  readonly #options: StoredOptions;
  readonly #entries = lruOfEntries<string, Entry>(MACHINES_AT_MOST);
  readonly #flights = new Map<string, Promise<readonly PricedMachine[]>>();

  constructor(options: StoredOptions) {
    this.#options = options;
  }

  /** Reads the machines that the cache lacks, in one statement. Rejects with `Unavailable`. @param at RFC 3339 */
  async get(organizationId: number, ids: readonly number[], at?: string): Promise<StoredMachines> {
    const { now, staleLimitMs } = this.#options;
    const keyOf = (id: number) => `${organizationId} ${id} ${at ?? ''}`;
    const found = new Map(ids.map((id) => [id, this.#entries.get(keyOf(id))]));
    const ageOf = (id: number) => now() - (found.get(id)?.readAt ?? Number.NEGATIVE_INFINITY);
    const wanted = ids.filter((id) => ageOf(id) >= STORED_TTL_MS);
    if (wanted.length > 0) {
      const readAt = now();
      try {
        const rows = await this.#read(organizationId, wanted, at);
        const byId = new Map(rows.map((row) => [row.id, row]));
        for (const id of wanted)
          found.set(id, this.#store(keyOf(id), { readAt, machine: byId.get(id) ?? null }));
      } catch (error) {
        if (!(error instanceof Unavailable) || ids.some((id) => ageOf(id) > staleLimitMs)) throw error;
      }
    }
    return new Map([...found].flatMap(([id, entry]) => (entry?.machine ? [[id, entry.machine]] : [])));
  }

  #store(key: string, entry: Entry): Entry {
    const before = this.#entries.peek(key)?.machine;
    const isSame = before && JSON.stringify(before) === JSON.stringify(entry.machine);
    const stored = isSame ? { ...entry, machine: before } : entry;
    this.#entries.set(key, stored);
    return stored;
  }

  #read(organizationId: number, ids: readonly number[], at?: string): Promise<readonly PricedMachine[]> {
    const key = `${organizationId} ${at ?? ''} ${ids.join()}`;
    const reading =
      this.#flights.get(key) ??
      this.#options.documents
        .postgres((sql) => pricedMachines(sql, organizationId, ids, at), { organizationId })
        .finally(() => this.#flights.delete(key));
    this.#flights.set(key, reading);
    return reading;
  }
}
