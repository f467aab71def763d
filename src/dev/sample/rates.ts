/** Exchange rates of the sample: US dollars for one of the other, from the European Central Bank for the day `asOf`. */
export const SAMPLE_RATES = { asOf: '2025-12-31', currency: 'USD', rates: { EUR: '1.1750' } } as const;
