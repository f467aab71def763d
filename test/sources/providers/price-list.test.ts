import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { adapter } from '../../../src/sources/providers/price-list.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { readCatalogue } from './read-catalogue.ts';

const HEADER = 'region_code,region_name,name,cpu,ram,ram_unit,price,per,currency,excluded';

async function itemsOf(...lines: string[]): Promise<CatalogueItem[]> {
  await using at = await mkdtempDisposable(join(tmpdir(), 'fleetbook-list-'));
  const path = join(at.path, 'machines.csv');
  await writeFile(path, [HEADER, ...lines, ''].join('\r\n'));
  return await readCatalogue(adapter, path, 'token', { provider: 'Acme' });
}

it('a list in CSV yields the machines and regions of its rows', async () => {
  const items = await itemsOf(
    'dc1,"Hall 1, Basel",m.small,2,4,GiB,0.0210,hour,CHF,',
    'dc1,,m.gpu,8,64,GB,1.40,hour,CHF,accelerated',
    'dc2,,m.nano,1,1536,MiB,3.65,month,EUR,',
  );
  expect(items).toEqual([
    {
      kind: 'offer',
      offer: {
        regionCode: 'dc1',
        name: 'm.small',
        cpu: 2,
        ram: 4,
        ramUnit: 'Binary',
        price: { amount: '0.021', per: 'hour', currency: 'CHF' },
      },
    },
    {
      kind: 'offer',
      offer: expect.objectContaining({ name: 'm.gpu', ramUnit: 'Decimal', excluded: 'accelerated' }),
    },
    {
      kind: 'offer',
      offer: expect.objectContaining({
        ram: 1.5,
        ramUnit: 'Binary',
        price: { amount: '3.65', per: 'month', currency: 'EUR' },
      }),
    },
    { kind: 'region', code: 'dc1', name: 'Hall 1, Basel' },
    { kind: 'region', code: 'dc2', name: 'dc2' },
  ]);
});

it.each([
  ['dc1,,a,two,4,GiB,0.02,hour,CHF,', 'line 3: cpu must be a whole number above 0; it is "two"'],
  ['dc1,,a,-2,4,GiB,0.02,hour,CHF,', 'line 3: cpu must be a whole number above 0; it is "-2"'],
  ['dc1,,a,2,0,GiB,0.02,hour,CHF,', 'line 3: ram must be a number above 0; it is "0"'],
  ['dc1,,a,2,4,GB/s,0.02,hour,CHF,', 'line 3: ram_unit must be GB, GiB or MiB; it is "GB/s"'],
  ['dc1,,a,2,4,GiB,"0,02",hour,CHF,', 'line 3: price must be a decimal amount; it is "0,02"'],
  ['dc1,,a,2,4,GiB,-0.02,hour,CHF,', 'line 3: price must not be negative; it is "-0.02"'],
  ['dc1,,a,2,4,GiB,,hour,CHF,', 'line 3: price is missing; it must be a decimal amount'],
  ['dc1,,a,2,4,GiB,0.02,day,CHF,', 'line 3: per must be minute, hour or month; it is "day"'],
  ['dc1,,a,2,4,GiB,0.02,hour,chf,', 'line 3: currency must be a currency code such as USD; it is "chf"'],
  [
    'dc1,,a,2,4,GiB,0.02,hour,CHF,sold out',
    'line 3: excluded must be discontinued, sold_out, unavailable, accelerated or licensed; it is "sold out"',
  ],
])('the row %s is rejected with its line and column', async (line, reason) => {
  const items = await itemsOf('dc1,,b,2,4,GiB,0.02,hour,CHF,', line);
  expect(items.filter((item) => item.kind === 'offer')).toHaveLength(1);
  expect(items.filter((item) => item.kind === 'rejected')).toEqual([
    { kind: 'rejected', key: 'a@dc1', name: 'a', regionCode: 'dc1', reason: expect.stringContaining(reason) },
  ]);
});

it('a row with an extra comma excuses any machine', async () => {
  const items = await itemsOf('dc1,Basel, CH,a,2,4,GiB,0.02,hour,CHF,', 'dc1,,b,2,4,GiB,0.02,hour,CHF,');
  expect(items.filter((item) => item.kind === 'rejected')).toEqual([
    {
      kind: 'rejected',
      key: 'line 2',
      reason: expect.stringMatching(/^line 2: has 11 values where the first line names 10 columns/),
    },
  ]);
});

it('rows with different names of their region keep the first name, and state the place', async () => {
  const items = await itemsOf(
    'dc1,Basel,a,2,4,GiB,0.02,hour,CHF,',
    'dc1,,b,2,4,GiB,0.02,hour,CHF,',
    'dc1,Bern,c,2,4,GiB,0.02,hour,CHF,',
  );
  expect(items.filter((item) => item.kind === 'offer')).toHaveLength(3);
  expect(items.filter((item) => item.kind !== 'offer')).toEqual([
    {
      kind: 'rejected',
      key: 'dc1',
      regionCode: 'dc1',
      reason: 'region_name must be the same on all rows of dc1; it is "Basel" on line 2, "Bern" on line 4',
    },
  ]);
});

it('a machine at zero is not published, and an excluded one has a reason', async () => {
  const items = await itemsOf('dc1,,a,2,4,GiB,0.000,hour,CHF,', 'dc1,,b,2,4,GiB,0,hour,CHF,unavailable');
  const excluded = items.flatMap((item) => (item.kind === 'offer' ? [item.offer.excluded] : []));
  expect(excluded).toEqual(['zero_price', 'unavailable']);
});

it.each([
  ['16000,MiB', '15.625 GiB. Thousands may be counted as 1024s, or the reverse: is it 16 GB?'],
  ['15.625,GiB', '15.625 GiB. Thousands may be counted as 1024s, or the reverse: is it 16 GB?'],
  ['16.384,GB', '16.384 GB. Thousands may be counted as 1024s, or the reverse: is it 16 GiB?'],
  ['0.5,GiB', undefined],
  ['3.75,GiB', undefined],
  ['15.25,GB', undefined],
  ['16,GiB', undefined],
])('a memory of %s is reported if its unit is probably wrong', async (ram, mistake) => {
  const items = await itemsOf(`dc1,,a,2,${ram},0.02,hour,CHF,`, `dc2,,a,2,${ram},0.02,hour,CHF,sold_out`);
  expect(items.filter(({ kind }) => kind === 'offer')).toHaveLength(2);
  const about =
    'one machine is not published, since the memory is no whole number of GB or GiB; the first is a@dc1 with';
  const row = {
    kind: 'rejected',
    key: 'units of memory',
    name: 'units of memory',
    reason: `${about} ${mistake}`,
  };
  expect(items.filter(({ kind }) => kind === 'rejected')).toEqual(mistake === undefined ? [] : [row]);
});
