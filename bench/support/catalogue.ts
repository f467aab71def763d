/** The catalogue that the benchmark syncs: made on the fly and the same every time, so that nothing of it is kept. */
import type { CatalogueAdapter, CatalogueItem } from '../../src/sources/source.ts';

export const REGIONS = 200;
/** Every so many-th region changes, and in it every so many-th machine: a hundredth of the offers, a tenth of the regions. */
const CHANGED_REGION = 10;
const CHANGED_MACHINE = 10;
/** Regions that a changed catalogue touches. */
export const CHANGED_REGIONS = REGIONS / CHANGED_REGION;

export interface CatalogueShape {
  /** Over all regions; a multiple of `REGIONS`. */
  readonly offers: number;
  /** 0 is the catalogue as it was first; any other number reprices 1 % of it, each its own way. */
  readonly edition: number;
}

const SIZES = [
  { cpu: 1, ram: 2 },
  { cpu: 2, ram: 4 },
  { cpu: 2, ram: 16 },
  { cpu: 4, ram: 8 },
  { cpu: 8, ram: 32 },
  { cpu: 16, ram: 64 },
  { cpu: 32, ram: 64 },
  { cpu: 32, ram: 128 },
] as const;
const FAMILIES = ['general', 'compute', 'memory', 'storage', 'burst', 'dense', 'edge'] as const;

/** A source as any other, but for its offers, which are made here and parsed from nowhere. */
export function benchAdapter(shape: CatalogueShape): CatalogueAdapter {
  return {
    id: 'bench',
    provider: { id: 999, name: 'Benchmark' },
    baseUrl: 'http://127.0.0.1:1',
    endpoints: [],
    credentials: 'none',
    memoryUnit: 'GiB',
    currency: 'USD',
    schedule: '0 * * * *',
    catalogue: () => items(shape),
  };
}

async function* items({ offers, edition }: CatalogueShape): AsyncGenerator<CatalogueItem> {
  const machines = offers / REGIONS;
  for (let region = 0; region < REGIONS; region++) {
    yield { kind: 'region', code: regionCode(region), name: `Region ${region + 1}` };
  }
  for (let region = 0; region < REGIONS; region++) {
    const code = regionCode(region);
    const currency = region % 2 === 0 ? 'USD' : 'EUR';
    const changes = edition > 0 && region % CHANGED_REGION === edition % CHANGED_REGION;
    // As providers price: one list, and a factor for each place, rounded to the last digit that they print.
    const factor = 1 + (region % 25) / 50;
    for (let machine = 0; machine < machines; machine++) {
      const size = SIZES[machine % SIZES.length] ?? SIZES[0];
      const family = FAMILIES[machine % FAMILIES.length];
      const repriced = changes && machine % CHANGED_MACHINE === edition % CHANGED_MACHINE;
      const hourly = (size.cpu * 0.0113 + (machine % 997) * 0.00031) * factor + (repriced ? 0.01 : 0);
      yield {
        kind: 'offer',
        offer: {
          regionCode: code,
          name: `${family}-${size.cpu}x${size.ram}.${machine}`,
          cpu: size.cpu,
          ram: size.ram,
          ramUnit: 'Binary',
          price: { amount: hourly.toFixed(5), per: 'hour', currency },
        },
      };
    }
  }
}

const regionCode = (region: number): string => `zone-${String(region + 1).padStart(3, '0')}`;
