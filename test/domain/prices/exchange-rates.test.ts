import { describe, expect, it } from 'vitest';
import { exchangeRates } from '../../../src/domain/prices/exchange-rates.ts';

const reference = { asOf: '2026-11-13', perEuro: { USD: '1.25', GBP: '0.8', JPY: '180' } };
const on = (day: string) => new Date(`${day}T12:00:00Z`);

describe('exchange rates', () => {
  it('are units of the published currency for one of the other, exact to 18 places', () => {
    expect(exchangeRates(reference, 'USD', on('2026-11-13'))).toEqual({
      EUR: '1.25',
      GBP: '1.5625',
      USD: '1',
      JPY: '0.006944444444444444',
    });
    expect(exchangeRates(reference, 'EUR', on('2026-11-13'))).toMatchObject({ USD: '0.8', GBP: '1.25' });
  });

  it('are valid through their seventh day and not on the eighth', () => {
    expect(exchangeRates(reference, 'USD', new Date('2026-11-20T23:59:59Z'))).toMatchObject({ EUR: '1.25' });
    expect(exchangeRates(reference, 'USD', new Date('2026-11-21T00:00:01Z'))).toEqual({});
  });

  it('are absent if the published currency is unknown or the date is invalid', () => {
    expect(exchangeRates(reference, 'XXX', on('2026-11-13'))).toEqual({});
    expect(exchangeRates({ ...reference, asOf: 'soon' }, 'USD', on('2026-11-13'))).toEqual({});
  });
});
