/**
 * The month of history that the demo adds to the sample: moving prices that end at those of the sample, AWS with its terms, a
 * price list, a file of rates, and the clusters of two more organizations.
 */
import { AWS_ENDPOINTS } from './aws.ts';
import clusters from './clusters.json' with { type: 'json' };
import { SAMPLE_RATES } from './rates.ts';
import { type Endpoint, SAMPLE_ENDPOINTS } from './upstream.ts';

/** The days before today on which the demo reads its sources. 0 is the start of the demo. */
export const DAYS = [30, 21, 14, 7, 0] as const;

export const RATES_PATH = '/rates.xml';
/** The id of the source that reads the list of own hardware. */
export const OWN_HARDWARE = 'own-hardware';
export const OWN_HARDWARE_PATH = '/own-hardware.json';
export const OWN_HARDWARE_TOKEN = 'demo';

interface Move {
  /** Prefix of the types' names. */
  readonly types: string;
  /** The price holds until this many days before today. */
  readonly until: number;
  /** Percent of the sample's price. */
  readonly percent: number;
}

/** Earlier prices, the oldest first. Each day moves fewer prices than the guards hold. */
const MOVES: readonly Move[] = [
  { types: 'cpx', until: 21, percent: 97 },
  { types: 'cpx', until: 0, percent: 101 },
  { types: 'metal.2', until: 14, percent: 105 },
  { types: 'ccx1', until: 14, percent: 103 },
  { types: 'cax1', until: 7, percent: 108 },
  { types: 'g6-dedicated', until: 21, percent: 97 },
  { types: 'g6-standard', until: 14, percent: 102 },
  { types: 'g6-nanode', until: 7, percent: 110 },
];

/** The type that the provider adds on a day. */
const NEW_TYPE = { name: 'g6-standard-1', day: 14 };
/** The type that is sold out in one location from a day on. */
const SOLD_OUT = { name: 'cax31', location: 'fsn1', day: 7 };

interface Priced {
  readonly hourly: number;
  readonly monthly: number;
}

interface Net {
  readonly net: string;
}

interface HetznerType {
  readonly name: string;
  readonly locations: readonly { readonly name: string }[];
  readonly prices: readonly { readonly price_hourly: Net; readonly price_monthly: Net }[];
}

interface LinodeType {
  readonly id: string;
  readonly price: Priced;
  readonly region_prices: readonly Priced[];
}

export class Market {
  /** Days before today that the upstreams answer for. */
  day: number = DAYS[0];
  #isBroken = false;

  /** Begins today's incident: Linode states cents, and the list of own hardware rejects its token. */
  breakDown(): void {
    this.day = 0;
    this.#isBroken = true;
  }

  readonly endpointAt = (path: string): Endpoint | undefined => {
    if (path === OWN_HARDWARE_PATH)
      return { rows: this.#ownHardware(), token: this.#isBroken ? 'renewed' : OWN_HARDWARE_TOKEN };
    if (path === RATES_PATH) return { rows: ratesFile() };
    const endpoint = SAMPLE_ENDPOINTS.get(path) ?? AWS_ENDPOINTS.get(path);
    if (!endpoint || !Array.isArray(endpoint.rows)) return endpoint;
    if (path.endsWith('/server_types')) return { ...endpoint, rows: this.#hetzner(endpoint.rows) };
    if (path.endsWith('/linode/types')) return { ...endpoint, rows: this.#linode(endpoint.rows) };
    if (path === '/clusters.json') return { rows: this.#clusters() };
    return endpoint;
  };

  #hetzner(rows: readonly unknown[]): unknown[] {
    const types = rows as readonly HetznerType[];
    const moved = (name: string, { net }: Net) => ({ net: this.#moved(name, Number(net)).toFixed(10) });
    return types.map((type) => ({
      ...type,
      locations: type.locations.map((location) => ({
        ...location,
        ...(this.#isSoldOut(type.name, location.name) && { available: false }),
      })),
      prices: type.prices.map((price) => ({
        ...price,
        price_hourly: moved(type.name, price.price_hourly),
        price_monthly: moved(type.name, price.price_monthly),
      })),
    }));
  }

  #linode(rows: readonly unknown[]): unknown[] {
    const types = rows as readonly LinodeType[];
    const unit = this.#isBroken ? 100 : 1;
    const moved = (id: string, price: Priced) => ({
      ...price,
      hourly: Number((this.#moved(id, price.hourly) * unit).toFixed(6)),
      monthly: Number((this.#moved(id, price.monthly) * unit).toFixed(2)),
    });
    return types
      .filter(({ id }) => id !== NEW_TYPE.name || this.#isReached(NEW_TYPE.day))
      .map((type) => ({
        ...type,
        price: moved(type.id, type.price),
        region_prices: type.region_prices.map((price) => moved(type.id, price)),
      }));
  }

  #ownHardware(): unknown[] {
    const row = {
      ram_unit: 'GiB',
      per: 'hour',
      currency: 'USD',
      architecture: 'x86_64',
      cpu_kind: 'dedicated',
    };
    const region = (code: string, name: string) => ({ region_code: code, region_name: name });
    return [region('hall-1', 'Hall 1, Basel'), region('hall-2', 'Hall 2, Basel')].flatMap((hall) =>
      [2, 4, 8, 16].map((cpu) => ({
        ...hall,
        name: `metal.${cpu}`,
        cpu,
        ram: cpu * 4,
        price: this.#moved(`metal.${cpu}`, cpu * 0.011).toFixed(5),
        ...row,
      })),
    );
  }

  /** Those of the sample stay in its organization. */
  #clusters(): unknown[] {
    const onAws = (name: string, machine: object, shards: number) => ({
      ...clusters[0],
      organization: 'acme',
      name,
      slug: name.toLowerCase(),
      region: { name: 'EU (Frankfurt)', code: 'eu-central-1' },
      provider: { id: 2, name: 'AWS' },
      shards,
      replicas: 2,
      machine: { ram_unit: 'Binary', ...machine },
    });
    const acme = [
      onAws('Checkout', { name: 'm6i.xlarge', cpu: 4, ram: 16 }, 2),
      onAws('Sessions', { name: 'm6a.large', cpu: 2, ram: 8 }, 1),
    ];
    const [orders, ...later] = clusters.map((cluster, index) => ({
      ...cluster,
      organization: 'globex',
      name: `Orders ${index + 1}`,
      slug: `orders-${index + 1}`,
      shards: index + 1,
    }));
    return [...clusters, ...acme, orders, ...(this.#isReached(7) ? later : [])];
  }

  #moved(type: string, price: number): number {
    const move = MOVES.find(({ types, until }) => type.startsWith(types) && this.day > until);
    return (price * (move?.percent ?? 100)) / 100;
  }

  #isSoldOut(type: string, location: string): boolean {
    return type === SOLD_OUT.name && location === SOLD_OUT.location && this.#isReached(SOLD_OUT.day);
  }

  #isReached(day: number): boolean {
    return this.day <= day;
  }
}

/** The rates of the sample in the format of the European Central Bank, dated today: older rates convert no price. */
function ratesFile(): string {
  const day = new Date().toISOString().slice(0, 10);
  const rates = `<Cube currency='${SAMPLE_RATES.currency}' rate='${SAMPLE_RATES.rates.EUR}'/>`;
  return `<?xml version="1.0"?><Envelope><Cube><Cube time='${day}'>${rates}</Cube></Cube></Envelope>`;
}
