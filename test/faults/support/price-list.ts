/** An upstream with a large CSV catalogue that changes from edition to edition. */
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';

const REGIONS = 25;
/** Machines of each region with another price in each edition. The price identifies the edition. */
const MARKED_OF_REGION = 20;
const RATES = `<gesmes:Envelope><Cube><Cube time='2026-11-20'><Cube currency='USD' rate='1.1'/></Cube></Cube></gesmes:Envelope>`;
const HEADER = 'region_code,region_name,name,cpu,ram,ram_unit,price,per,currency';

export interface PriceList extends AsyncDisposable {
  readonly url: string;
  /** Address of the reference rates of the European Central Bank, for lists in other currencies. */
  readonly ratesUrl: string;
  readonly regions: number;
  readonly offers: number;
  /** The edition of the next answers. */
  edition: number;
  /** If true, every offer has another price, and a guard holds the batch. */
  repricesAll: boolean;
}

/** @param offers a multiple of 25, the number of regions */
export async function startPriceList(offers: number): Promise<PriceList> {
  const upstream: FakeUpstream = await fakeUpstream();
  const list = { edition: 1, repricesAll: false };
  upstream.expect(
    { path: '/list.csv', times: 'any' },
    {
      headers: { 'content-type': 'text/csv' },
      get raw() {
        return csv(offers, list.edition, list.repricesAll);
      },
    },
  );
  upstream.expect({ path: '/rates.xml', times: 'any' }, { raw: RATES });
  return Object.assign(list, {
    url: `${upstream.url}/list.csv`,
    ratesUrl: `${upstream.url}/rates.xml`,
    regions: REGIONS,
    offers,
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  });
}

function csv(offers: number, edition: number, repricesAll: boolean): string {
  const lines = [HEADER];
  for (let region = 0; region < REGIONS; region++)
    for (let type = 0; type < offers / REGIONS; type++) {
      const price = type < MARKED_OF_REGION ? hourly(edition) : repricesAll ? '3.5' : '2.5';
      lines.push(`r${region},Region ${region} of ${edition},m${type},2,4,GiB,${price},hour,USD`);
    }
  return `${lines.join('\n')}\n`;
}

/** A ten-thousandth of a dollar per hour for each edition: far below the limits of guards. */
const hourly = (edition: number): string => (1 + edition / 10_000).toFixed(4);

interface Listed {
  readonly name: string;
  readonly price: number;
}

/**
 * Returns the edition of a region's machines.
 * @param answer with all of them
 * @throws Error if they are of several editions, or if some are missing
 */
export function editionOf(answer: unknown, { offers }: Pick<PriceList, 'offers'>): number {
  const machines = answer as readonly Listed[];
  if (machines.length !== offers / REGIONS) throw new Error(`${machines.length} machines`);
  const marked = machines.filter(({ name }) => Number(name.slice(1)) < MARKED_OF_REGION);
  const editions = new Set(marked.map(({ price }) => Math.round((price * 60 - 1) * 10_000)));
  const [edition = Number.NaN] = editions;
  if (editions.size !== 1) throw new Error(`torn: editions ${[...editions].join(', ')} in one answer`);
  return edition;
}
