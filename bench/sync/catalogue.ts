/**
 * The catalogue that the benchmark syncs: generated on demand and the same every time, so that it needs no memory.
 */
import type { Offer } from '../../src/domain/machine.ts';
import type { CatalogueAdapter, CatalogueItem } from '../../src/sources/source.ts';

export const REGIONS = 200;
/**
 * The step between changed regions, and between changed machines in them: a hundredth of the offers, a tenth of the
 * regions.
 */
const CHANGED_REGION = 10;
const CHANGED_MACHINE = 10;
export const CHANGED_REGIONS = REGIONS / CHANGED_REGION;

export interface CatalogueShape {
  /** Over all regions; a multiple of `REGIONS`. */
  readonly offers: number;
  /** 0 is the first catalogue. Each other number reprices a different 1 % of it. */
  readonly edition: number;
  /** Each offer has three terms and a monthly cap. */
  readonly terms?: boolean;
}

export const SIZES = [
  { cpu: 1, ram: 2 },
  { cpu: 2, ram: 4 },
  { cpu: 2, ram: 16 },
  { cpu: 4, ram: 8 },
  { cpu: 8, ram: 32 },
  { cpu: 16, ram: 64 },
  { cpu: 32, ram: 64 },
  { cpu: 32, ram: 128 },
] as const;
/** Places with separate prices, which regions share. */
const PLACES = 25;
const FAMILIES = ['general', 'compute', 'memory', 'storage', 'burst', 'dense', 'edge'] as const;

/** An ordinary source whose offers are generated here instead of parsed. */
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

async function* items({ offers, edition, terms = false }: CatalogueShape): AsyncGenerator<CatalogueItem> {
  for (let region = 0; region < REGIONS; region++) {
    yield { kind: 'region', code: regionCode(region), name: `Region ${region + 1}` };
  }
  // The upstream's parsed answer already exists, except for the part that grows with the regions.
  const types = Array.from({ length: offers / REGIONS }, (_, type) => machineType(type));
  for (let region = 0; region < REGIONS; region++) {
    const code = regionCode(region);
    const currency = region % 2 === 0 ? 'USD' : 'EUR';
    const changes = edition > 0 && region % CHANGED_REGION === edition % CHANGED_REGION;
    for (const [index, type] of types.entries()) {
      const repriced = changes && index % CHANGED_MACHINE === edition % CHANGED_MACHINE;
      const amount = (repriced ? type.repriced : type.amounts)[region % PLACES] ?? '';
      const { name, cpu, ram } = type;
      const price = { amount, per: 'hour', currency } as const;
      const offer = { regionCode: code, name, cpu, ram, ramUnit: 'Binary', price } as const;
      yield { kind: 'offer', offer: terms ? { ...offer, ...termsAt(amount, currency) } : offer };
    }
  }
}

function termsAt(amount: string, currency: string): Pick<Offer, 'terms' | 'monthlyCap'> {
  const hourly = (share: number) =>
    ({ price: { amount: (Number(amount) * share).toFixed(5), per: 'hour', currency } }) as const;
  return {
    terms: {
      spot: hourly(0.4),
      savings_plan_1y: hourly(0.7),
      reserved_1y: { ...hourly(0.3), upfront: '100' },
    },
    monthlyCap: (Number(amount) * 600).toFixed(2),
  };
}

interface MachineType {
  readonly name: string;
  readonly cpu: number;
  readonly ram: number;
  /** An hour in each place. */
  readonly amounts: readonly string[];
  readonly repriced: readonly string[];
}

function machineType(type: number): MachineType {
  const { cpu, ram } = SIZES[type % SIZES.length] ?? SIZES[0];
  const hourly = cpu * 0.0113 + (type % 997) * 0.00031;
  // Like providers: one list, and a factor for each place, rounded to their last digit.
  const amounts = (more: number) =>
    Array.from({ length: PLACES }, (_, place) => (hourly * (1 + place / 50) + more).toFixed(5));
  return {
    name: `${FAMILIES[type % FAMILIES.length]}-${cpu}x${ram}.${type}`,
    cpu,
    ram,
    amounts: amounts(0),
    repriced: amounts(0.01),
  };
}

export const regionCode = (region: number): string => `zone-${String(region + 1).padStart(3, '0')}`;
