/** Prices of one provider in the columns of OpenCost's CSV provider (`pkg/cloud/provider/csvprovider.go`). See docs/exports.md. */
import { z } from 'zod';
import { inSlices } from '../../domain/event-loop.ts';
import { pricePerHour, product } from '../../domain/prices/price.ts';
import { type Operation, operation } from '../../http/operation.ts';
import {
  idParameter,
  invalidParameter,
  listParameter,
  wordParameter,
} from '../../http/protocol/parameters.ts';
import { documented } from '../../http/schemas.ts';
import {
  exactPriceOf,
  type IndexedRegion,
  machineOfRow,
  type PricedIndex,
  type ReadableMarket,
  readPriced,
  rowsOfRegions,
} from '../../market/market.ts';
import type { Answer } from '../../snapshot/document/answer.ts';
import { textBody } from '../../snapshot/document/body.ts';
import { csvLine } from './csv.ts';
import type { Row } from './tables.ts';

/** OpenCost reads the columns by position. It does not read `Version`, which has the provider. */
const COLUMNS = [
  ...['EndTimestamp', 'InstanceID', 'Region', 'AssetClass', 'InstanceIDField', 'InstanceType'],
  ...['MarketPriceHourly', 'Version'],
];
const NODE_FIELD = 'metadata.labels.node.kubernetes.io/instance-type';
const VOLUME_FIELD = 'spec.storageClassName';

/** OpenCost multiplies the price of a volume by its GiB. */
const GIB_IN_GB = '1.073741824';

/** A GiB costs millionths: prices of storage need more places than those of machines. */
const STORAGE_PLACES = 15;

/** Machines of one step: each takes some microseconds. */
const ROWS_PER_STEP = 256;

const id = (description: string, example: number) =>
  idParameter({ description, example, listedBy: '/v1/providers' });
const parameters = {
  provider: id('Provider of the nodes', 5),
  region: listParameter(id('Regions of the nodes; all of the provider unless given', 3), 100).optional(),
  prices: wordParameter(
    'Prices of machines. `own`: those of the price book of the organization where an entry applies, else list prices',
    ['own', 'list'],
    'own',
  ).default('own'),
};

export function openCostOperation(market: ReadableMarket): Operation {
  return operation({
    path: '/v1/exports/opencost.csv',
    scope: 'machines:read',
    parameters,
    isStrict: true,
    mediaType: 'text/csv',
    doc: {
      id: 'exportOpenCost',
      summary: 'Prices of one provider for OpenCost',
      description:
        "A row for each machine, sold out or not, at its price on demand of an hour, and one for each kind of block storage at the price of a GiB for an hour. OpenCost finds a volume by the name of its storage class alone. So storage whose price differs between the regions of the file has no row: name the cluster's regions.",
      answers: () => documented(z.string(), { description: 'CSV by RFC 4180, see docs/exports.md' }),
      example: [COLUMNS, nodeRow('cx23', 'fsn1', '0.0056', 'Hetzner')].map(csvLine).join(''),
      extension: true,
    },
    read: async ({ provider, region: wanted, prices }, grant) => {
      const organizationId = prices === 'own' ? grant.organizationId : undefined;
      const { state, priced } = await readPriced(market, { organizationId, term: 'on_demand' }, 'price');
      const { regions } = state.index;
      const ofProvider = [...regions.keys()].filter((place) => regions[place]?.provider.id === provider);
      if (ofProvider.length === 0)
        return invalidParameter('query', 'provider', parameters.provider, String(provider));
      const places = ofProvider.filter((place) => wanted?.includes(regions[place]?.region.id ?? 0) ?? true);
      const isOfProvider = (regionId: number) =>
        places.some((place) => regions[place]?.region.id === regionId);
      const other = wanted?.find((regionId) => !isOfProvider(regionId));
      if (other !== undefined) return invalidParameter('query', 'region', parameters.region, String(other));
      const marks = new Uint8Array(regions.length);
      for (const place of places) marks[place] = 1;
      const lines = await inSlices(nodeLines(priced, marks));
      const volumes = volumeRows(places.flatMap((place) => regions[place] ?? []));
      const body = textBody([csvLine(COLUMNS), ...lines, ...volumes.map(csvLine)].join(''));
      const currency = regions[places[0] ?? 0]?.currency;
      return { body, tier: state.tier, asOf: state.asOf(places), currency } satisfies Answer;
    },
    // Own prices differ by organization.
    shared: false,
  });
}

const nodeRow = (name: string, region: string, price: string, provider: string): Row => {
  return [null, name, region, 'node', NODE_FIELD, name, Number(price), provider];
};

/** Returns the lines of each region, in the order of regions and names. @param marks 1 for each region of the file */
function* nodeLines(priced: PricedIndex, marks: Uint8Array): Generator<void, string[]> {
  const byRegion = new Map<string, { readonly name: string; readonly line: string }[]>();
  for (const [i, row] of (yield* rowsOfRegions(priced.view.rows, marks)).entries()) {
    if (i % ROWS_PER_STEP === 0) yield;
    const { name = '', region, provider } = machineOfRow(priced.view, row, ['name', 'region', 'provider']);
    const code = region?.code ?? '';
    const price = pricePerHour(exactPriceOf(priced, row).price);
    const found = byRegion.get(code) ?? [];
    found.push({ name, line: csvLine(nodeRow(name, code, price, provider?.name ?? '')) });
    byRegion.set(code, found);
  }
  const lines: string[] = [];
  for (const [, found] of [...byRegion].sort(([a], [b]) => (a < b ? -1 : 1))) {
    yield;
    found.sort((a, b) => (a.name < b.name ? -1 : 1));
    lines.push(found.map(({ line }) => line).join(''));
  }
  return lines;
}

/** Returns a row for each storage that has one price, by the name that OpenCost compares with a storage class in lower case. */
function volumeRows(regions: readonly IndexedRegion[]): Row[] {
  const stated = regions.flatMap(({ prices = [], provider }) =>
    prices
      .filter(({ item }) => item === 'block_storage')
      .flatMap(({ name, unit, tiers }) => {
        const amounts = tiers.map(({ price }) => price).filter((price) => Number(price) > 0);
        const [perMinute] = amounts;
        if (perMinute === undefined) return [];
        const perGib = unit === 'GB' ? product(perMinute, GIB_IN_GB) : perMinute;
        // A price by quantity is none of one GiB.
        const price = amounts.length === 1 ? pricePerHour(perGib, STORAGE_PLACES) : undefined;
        return { name: name.toLowerCase(), price, provider: provider.name };
      }),
  );
  const rows: Row[] = [];
  for (const [name, prices] of Map.groupBy(stated, (each) => each.name)) {
    const [first] = prices;
    if (first?.price === undefined || prices.some(({ price }) => price !== first.price)) continue;
    rows.push([null, name, '', 'pv', VOLUME_FIELD, name, Number(first.price), first.provider]);
  }
  return rows.sort((a, b) => (String(a[1]) < String(b[1]) ? -1 : 1));
}
