/** Real incidents of upstreams, and each failure that the contract of sources names. */
import type { Json } from '../../conformance/catalogue-case.ts';
import type { MemoryAnswer } from './memory-http.ts';
import type { Otherwise, Page } from './sources.ts';

export interface Incident {
  /** Ends the sentence that begins "its upstream". */
  readonly what: string;
  /** The upstream's answers; created for each source. */
  readonly trouble: () => Otherwise;
  /** Possible results of a run: the kind of its failure, or its batch's state. */
  readonly outcomes: readonly string[];
}

const text = (body: string) => Buffer.from(body);

/** Answers every request with this. */
const all =
  (answer: MemoryAnswer): Incident['trouble'] =>
  () =>
  () =>
    answer;

/** The first page is correct, and the second is not. */
const afterFirst =
  (answer: (first: Page) => MemoryAnswer): Incident['trouble'] =>
  () => {
    let first: Page | undefined;
    return (page) => {
      first ??= page;
      return page === first ? undefined : answer(first);
    };
  };

const answerOf = (json: Json, { headers }: Page): MemoryAnswer => ({
  bytes: text(JSON.stringify(json)),
  ...(headers === undefined ? {} : { headers }),
});

/** Faults, whose answers contain no data. */
export const FAULTS: readonly Incident[] = [
  { what: 'is down', trouble: all({ status: 503, bytes: text('') }), outcomes: ['retry'] },
  {
    what: 'asks to be left alone',
    trouble: all({ status: 429, bytes: text('{}'), headers: { 'retry-after': '420' } }),
    outcomes: ['retry'],
  },
  {
    what: 'refuses the token',
    trouble: all({ status: 401, bytes: text('{}') }),
    outcomes: ['misconfigured'],
  },
  { what: 'forbids it', trouble: all({ status: 403, bytes: text('{}') }), outcomes: ['misconfigured'] },
  { what: 'is gone', trouble: all({ status: 404, bytes: text('{}') }), outcomes: ['gone'] },
  { what: 'is gone for good', trouble: all({ status: 410, bytes: text('{}') }), outcomes: ['gone'] },
  {
    what: 'shows a page of maintenance',
    trouble: all({ bytes: text('<html>back soon</html>') }),
    outcomes: ['invalid'],
  },
  { what: 'says nothing', trouble: all({ bytes: text('') }), outcomes: ['retry'] },
  { what: 'answers null', trouble: all({ bytes: text('null') }), outcomes: ['invalid'] },
  {
    what: 'breaks off in the middle',
    trouble: () => (page) => {
      const { bytes, headers } = answerOf(page.json, page);
      return { bytes: bytes.subarray(0, bytes.length / 2), headers };
    },
    outcomes: ['invalid', 'retry'],
  },
  {
    what: 'fails after its first page',
    trouble: afterFirst(() => ({ status: 500, bytes: text('') })),
    outcomes: ['retry'],
  },
  {
    what: 'sends its first page for each that follows',
    trouble: afterFirst((first) => answerOf(first.json, first)),
    outcomes: ['invalid', 'held'],
  },
];

/** Changes the rows of a page, if they are a list. */
const rows =
  (change: (rows: readonly Json[]) => Json[]): Incident['trouble'] =>
  () =>
  (page) => {
    const document = structuredClone(page.json);
    const path = page.list.split('/').filter((part) => part !== '');
    let holder: Json = { '': document };
    for (const part of ['', ...path].slice(0, -1)) holder = (holder as { [key: string]: Json })[part] ?? null;
    const field = path.at(-1) ?? '';
    const found = (holder as { [key: string]: Json })[field];
    if (!Array.isArray(found)) return undefined;
    (holder as { [key: string]: Json })[field] = change(found);
    return answerOf(path.length === 0 ? ((holder as { '': Json })[''] ?? null) : document, page);
  };

/** Well-formed lists with wrong data. */
export const WRONG_LISTS: readonly Incident[] = [
  { what: 'lists nothing', trouble: rows(() => []), outcomes: ['invalid', 'held'] },
  {
    what: 'lists everything twice',
    trouble: rows((found) => found.flatMap((row) => [row, row])),
    outcomes: ['invalid', 'held'],
  },
];

type Row = Record<string, Json>;

/** Hetzner's list of machine types with each row changed, or another list of rows. */
const types =
  (change: (row: Row, index: number) => Row | readonly Row[]): Incident['trouble'] =>
  () =>
  (page) => {
    if (page.path !== '/v1/server_types') return undefined;
    const document = structuredClone(page.json) as { server_types: Row[] };
    document.server_types = document.server_types.flatMap((row, index) => change(row, index));
    return answerOf(document as unknown as Json, page);
  };

const prices = (change: (net: string) => string) =>
  types((row) => ({
    ...row,
    prices: (row.prices as Row[]).map((each) => {
      const { net } = each.price_hourly as { net: string };
      return { ...each, price_hourly: { net: change(net) } };
    }),
  }));

/** Wrong data of one format: units, prices and shapes. */
export const WRONG_HETZNER: readonly Incident[] = [
  { what: 'has no types', trouble: types(() => []), outcomes: ['invalid', 'held'] },
  {
    what: 'has lost half of its types',
    trouble: types((row, index) => (index % 2 === 0 ? row : [])),
    outcomes: ['held'],
  },
  { what: 'has every type twice', trouble: types((row) => [row, row]), outcomes: ['held'] },
  {
    what: 'states prices in cents',
    trouble: prices((net) => String(Number(net) * 100)),
    outcomes: ['held'],
  },
  { what: 'states prices of zero', trouble: prices(() => '0'), outcomes: ['held'] },
  { what: 'states negative prices', trouble: prices((net) => `-${net}`), outcomes: ['held', 'invalid'] },
  {
    what: 'states memory in another unit',
    trouble: types((row) => ({ ...row, memory: Number(row.memory) * 1024 })),
    outcomes: ['held'],
  },
  {
    what: 'has one bad type',
    trouble: types((row, index) => (index === 0 ? { ...row, cores: 'two' } : row)),
    outcomes: ['unchanged', 'held'],
  },
];
