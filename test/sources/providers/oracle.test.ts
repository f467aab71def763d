import { expect, it } from 'vitest';
import { adapter } from '../../../src/sources/providers/oracle.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { fates, readCatalogue } from './read-catalogue.ts';

const DATA = '/a/ocom/docs/cloudestimator2/data';
const part = (type: string, qty: number | null) => ({ partNumber: 'B1', type: { value: type }, qty });
const shape = {
  name: 'VM.Standard3.Flex',
  hidden: false,
  status: 'ACTIVE',
  bundleMemoryQty: null,
  gpuQty: null,
  processorType: { value: 'intel' },
  shapeType: { value: 'vm' },
  products: [part('ocpu', 1), part('memory', 16)],
};

async function itemsOf(changes: object): Promise<CatalogueItem[]> {
  await using upstream = await fakeUpstream();
  upstream.expect({ path: `${DATA}/shapes.json` }, { json: { items: [{ ...shape, ...changes }] } });
  const currencyCodeLocalizations = [
    { currencyCode: 'USD', prices: [{ model: 'PAY_AS_YOU_GO', value: 0.5 }] },
  ];
  const product = { partNumber: 'B1', metricName: 'OCPU Per Hour', currencyCodeLocalizations };
  const others = [
    ['B91961', 'Gigabyte Storage Capacity Per Month'],
    ['B91962', 'Performance Units Per Gigabyte Per Month'],
    ...['B88327', 'B93455', 'B93456'].map((part) => [part, 'Gigabyte Outbound Data Transfer Per Month']),
  ].map(([partNumber, metricName]) => ({ partNumber, metricName, currencyCodeLocalizations }));
  upstream.expect(
    { path: '/pls/apex/cetools/api/v1/products/', query: { currencyCode: 'USD' } },
    { json: { items: [product, ...others] } },
  );
  return await readCatalogue(adapter, upstream.url + DATA);
}

it.each<[string, object, string[]]>([
  ['is offered', {}, ['offered']],
  ['has a GPU', { gpuQty: 1 }, ['accelerated']],
  ['has GPUs by its name, and null for their number', { name: 'BM.GPU.X1.8' }, ['accelerated']],
  [
    'has GPUs by its name, null for their number, and an Arm host',
    { name: 'BM.GPU.X1.8', processorType: { value: 'arm' } },
    ['accelerated'],
  ],
  [
    'has GPUs and a documented size, which the list lacks',
    { name: 'BM.GPU.GB300.4 (NVL72)', gpuQty: 4, products: [part('ocpu', null)] },
    ['accelerated'],
  ],
  // It has no size to store, and would never be published.
  ['has GPUs and no known size', { name: 'BM.GPU.X1.8', gpuQty: 8, products: [part('ocpu', null)] }, []],
  ['has no GPU and no number of OCPUs', { products: [part('ocpu', null), part('memory', 16)] }, ['rejected']],
  ['has no GPU and no memory', { products: [part('ocpu', 1)] }, ['rejected']],
])('the fate of a shape of Oracle that %s', async (_, changes, expected) => {
  expect(fates(await itemsOf(changes))).toEqual(expected);
});

it('an accelerated shape of Oracle costs nothing known if the list has no number of its GPUs', async () => {
  const items = await itemsOf({ name: 'BM.GPU.GB300.4', products: [part('ocpu', null)] });
  expect(items).toContainEqual(
    expect.objectContaining({
      offer: expect.objectContaining({
        price: expect.objectContaining({ amount: '0' }),
        excluded: 'accelerated',
      }),
    }),
  );
});
