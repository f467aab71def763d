/**
 * The exchange rates of the sample catalogue: units of US dollar for one of the other, as the European Central Bank
 * published them for the day that `asOf` names. The sample's prices are noted around that day.
 */
export const SAMPLE_RATES = { asOf: '2025-12-31', currency: 'USD', rates: { EUR: '1.1750' } } as const;
