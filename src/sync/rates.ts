import { storedRates, writeRates } from '../db/prices/currency.ts';
import { COMPLETE } from '../domain/run.ts';
import type { RatesReading } from '../sources/source.ts';
import {
  type BatchKind,
  type Compared,
  type Staged,
  type SyncOptions,
  type SyncResult,
  syncBatch,
} from './pipeline.ts';

interface Read {
  readonly rates: RatesReading;
}

/** Stores the rates. The next run of each source converts its prices; a new rate alone is no price change. */
export function syncRates(
  sync: SyncOptions & { readonly rates: Promise<RatesReading> },
): Promise<SyncResult> {
  return syncBatch(ratesKind(sync.rates), sync);
}

function ratesKind(reading: Promise<RatesReading>): BatchKind<Staged & Read, Compared & Read> {
  return {
    async stage() {
      const rates = await reading;
      if ('unmodified' in rates)
        return {
          rates,
          seen: 0,
          validators: [{ kind: 'unmodified', validator: rates.unmodified }],
          dataTime: undefined,
        };
      const { validator, perEuro } = rates;
      return {
        rates,
        seen: Object.keys(perEuro).length,
        validators: validator ? [{ kind: 'validator', validator }] : [],
        dataTime: undefined,
      };
    },
    confirm: async (db) => Object.keys((await storedRates(db))?.perEuro ?? {}).length,
    async lock() {},
    // Reference rates have no guards.
    compare: async (_, { rates, seen }) => ({
      rates,
      counts: { seen, rejected: 0 },
      rejected: [],
      guards: [],
      withdrawn: [],
      completeness: COMPLETE,
    }),
    hold: async () => undefined,
    async saveBefore() {},
    async write(db, { rates }) {
      const written =
        'unmodified' in rates ? { added: 0, changed: 0, rates: [] } : await writeRates(db, rates);
      const { added, changed } = written;
      return { changed: added + changed > 0, counts: { added, changed }, unread: [], rates: written.rates };
    },
  };
}
