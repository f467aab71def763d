/** An upstream with a large catalogue, as CSV, that changes from one edition to the next. */
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';

const REGIONS = 25;
/** Machines of each region that have another price in each edition; it tells which edition that is. */
const MARKED_OF_REGION = 20;
const RATES = `<gesmes:Envelope><Cube><Cube time='2026-11-20'><Cube currency='USD' rate='1.1'/></Cube></Cube></gesmes:Envelope>`;
const HEADER = 'region_code,region_name,name,cpu,ram,ram_unit,price,per,currency';

export interface PriceList extends AsyncDisposable {
  readonly url: string;
  /** Where the reference rates of the European Central Bank are read, which a list in any currency may need. */
  readonly ratesUrl: string;
  readonly regions: number;
  readonly offers: number;
  /** What it answers from now on. */
  edition: number;
  /** While it is true every offer has another price: a batch that is held. */
  repricesAll: boolean;
}

/** @param offers a multiple of 25: so many regions share them */
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

/** A ten-thousandth of a dollar an hour for each edition: far within what the guards let through. */
const hourly = (edition: number): string => (1 + edition / 10_000).toFixed(4);

interface Listed {
  readonly name: string;
  readonly price: number;
}

/**
 * The edition that a region's machines show.
 * @param answer to the request for all of them
 * @throws Error when they are of several, or some are not there
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
