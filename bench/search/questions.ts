/** The searches: ordinary ones and the most expensive ones, both as a search and as SQL. */
import { GIGABYTE } from '../../src/market/dictionary.ts';
import type { Filters, Sort } from '../../src/market/filters.ts';

export interface Question {
  readonly what: string;
  /** In the API's format. */
  readonly query: string;
  readonly filters: Filters;
  readonly sort: Sort;
  readonly where: string;
  readonly order: string;
}

export const LIMIT = 50;
const CHEAPEST: Sort = { by: 'price', descending: false };
const gib = (count: number): number => count * 1000 * GIGABYTE.Binary;
const hundred = Array.from({ length: 100 }, (_, i) => i * 2 + 1);

type Given = Pick<Question, 'what' | 'query' | 'where'> & {
  readonly filters: Filters;
  readonly sort?: Sort;
  readonly order?: string;
};

export const QUESTIONS: readonly Question[] = (
  [
    {
      what: '4 cpus and 16 GiB, the cheapest',
      query: 'min_cpu=4&min_ram=16',
      filters: { minCpu: 4, minRam: gib(16) },
      where: 'cpu >= 4 and ram >= 16',
    },
    { what: 'everything, the cheapest', query: '', filters: {}, where: 'true' },
    {
      what: 'arm64, by price per cpu, the dearest',
      query: 'architecture=arm64&sort=-price_per_cpu',
      filters: { architecture: 'arm64' },
      sort: { by: 'price_per_cpu', descending: true },
      where: "architecture = 'arm64'",
      order: 'price / cpu desc',
    },
    {
      what: 'two providers, 8 GiB per cpu',
      query: 'provider=2,5&min_ram_per_cpu=8',
      filters: { providers: [2, 5], minRamPerCpu: gib(8) },
      where: 'provider in (2, 5) and ram >= 8 * cpu',
    },
    { what: 'one region', query: 'region=77', filters: { regions: [77] }, where: 'region = 77' },
    {
      what: 'a hundred regions and a name',
      query: `region=${hundred.join()}&name=edge`,
      filters: { regions: hundred, name: 'edge' },
      where: `region in (${hundred.join()}) and strpos(lower(name), 'edge') > 0`,
    },
    {
      what: 'a name that one type has',
      query: 'name=.4321',
      filters: { name: '.4321' },
      where: "strpos(lower(name), '.4321') > 0",
    },
    {
      what: 'a name that a seventh has',
      query: 'name=DENSE&sort=cpu',
      filters: { name: 'DENSE' },
      sort: { by: 'cpu', descending: false },
      where: "strpos(lower(name), 'dense') > 0",
      order: 'cpu',
    },
    {
      what: 'a price that none has',
      query: 'max_price=0.000001',
      filters: { maxPrice: 0.000001 },
      where: 'price <= 0.000001',
    },
    {
      what: 'the dearest region, by price, and small machines',
      query: 'region=24&max_cpu=2',
      filters: { regions: [24], maxCpu: 2 },
      where: 'region = 24 and cpu <= 2',
    },
  ] satisfies Given[]
).map((given: Given) => ({ sort: CHEAPEST, order: 'price', ...given }));
