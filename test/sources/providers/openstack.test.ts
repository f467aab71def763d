import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { adapter } from '../../../src/sources/providers/openstack.ts';
import type { CatalogueItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, RECORDED, WRITTEN } from '../../support/payloads.ts';
import { readCatalogue } from './read-catalogue.ts';

const flavor = { name: 'c2.small', vcpus: 2, ram: 4096 };
const PATH = '/v2.1/flavors/detail';

async function itemsOf(upstream: FakeUpstream, prices: string, base = ''): Promise<CatalogueItem[]> {
  await using at = await mkdtempDisposable(join(tmpdir(), 'fleetbook-openstack-'));
  const path = join(at.path, 'prices.csv');
  await writeFile(path, `name,price,per,currency,excluded\n${prices}\n`);
  const options = { provider: 'Acme', region: 'dc1', prices: path };
  return await readCatalogue(adapter, upstream.url + base, 'token', options);
}

/** Returns the exclusion of one flavor with these fields, at an ordinary price. */
async function excluded(fields: object): Promise<string | undefined> {
  await using upstream = await fakeUpstream();
  upstream.expect({ path: PATH }, { json: { flavors: [{ ...flavor, ...fields }] } });
  const items = await itemsOf(upstream, 'c2.small,0.019,hour,EUR,');
  const [offer] = items.filter((item) => item.kind === 'offer');
  expect(items).toEqual([{ kind: 'region', code: 'dc1', name: 'dc1' }, offer]);
  return offer?.offer.excluded;
}

it.each([
  ['in the format of Nova before 2.61', {}, undefined],
  [
    'with plain extra specs',
    { extra_specs: { 'hw:cpu_policy': 'shared', 'resources:VCPU': '2' } },
    undefined,
  ],
  ['with a passed-through device', { extra_specs: { 'pci_passthrough:alias': 'a40:1' } }, 'accelerated'],
  ['with its own kind of GPU', { extra_specs: { 'resources1:CUSTOM_GPU_A': '1' } }, 'accelerated'],
  [
    'with a kind of GPU that never ends',
    { extra_specs: { [`resources1:CUSTOM_${'GPU'.repeat(60_000)}\n`]: '1' } },
    'accelerated',
  ],
  ['with a virtual GPU', { extra_specs: { 'resources:VGPU': '1' } }, 'accelerated'],
  ['with a GPU in a separate group', { extra_specs: { 'resources1:PGPU': '1' } }, 'accelerated'],
  ['with a device profile', { extra_specs: { 'accel:device_profile': 'fpga' } }, 'accelerated'],
  ['that is disabled', { 'OS-FLV-DISABLED:disabled': true }, 'unavailable'],
  ['that only some projects may use', { 'os-flavor-access:is_public': false }, 'unavailable'],
])('a flavor %s is published or excluded with its reason', async (_, fields, reason) => {
  expect(await excluded(fields)).toBe(reason);
});

it('a flavor is also requested below a URL that ends in /v2.1 or in a project', async () => {
  for (const base of ['/v2.1', '/compute/v2.1/', '/v2.1/6f70656e']) {
    await using upstream = await fakeUpstream();
    upstream.expect(
      {
        path: `${base.replace(/\/$/, '')}/flavors/detail`,
        headers: { 'x-auth-token': 'token', 'openstack-api-version': 'compute 2.61' },
      },
      { json: { flavors: [flavor] } },
    );
    expect(await itemsOf(upstream, 'c2.small,0.019,hour,EUR,', base)).toHaveLength(2);
  }
});

it('the last page of flavors may be empty, since a full one always names a next', async () => {
  await using upstream = await fakeUpstream();
  const next = { flavors_links: [{ rel: 'next', href: '/v2.1/flavors/detail?marker=1' }] };
  upstream.expect({ path: PATH }, { json: { flavors: [flavor], ...next } });
  upstream.expect({ path: PATH, query: { marker: '1' } }, { json: { flavors: [] } });
  expect(await itemsOf(upstream, 'c2.small,0.019,hour,EUR,')).toHaveLength(2);
});

it('pages of flavors that do not end are rejected', async () => {
  await using upstream = await fakeUpstream();
  const next = { flavors_links: [{ rel: 'next', href: '/v2.1/flavors/detail?marker=1' }] };
  upstream.expect({ path: PATH }, { json: { flavors: [flavor], ...next } });
  upstream.expect({ path: PATH, query: { marker: '1' } }, { json: { flavors: [flavor], ...next } });
  await expect(itemsOf(upstream, 'c2.small,0.019,hour,EUR,')).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining(`${PATH} repeats a page`),
  });
});

it('a next page of flavors without a marker is not requested', async () => {
  await using upstream = await fakeUpstream();
  const next = { flavors_links: [{ rel: 'next', href: '/v2.1/flavors/detail' }] };
  upstream.expect({ path: PATH }, { json: { flavors: [flavor], ...next } });
  await expect(itemsOf(upstream, 'c2.small,0.019,hour,EUR,')).rejects.toMatchObject({
    kind: 'invalid',
    message: expect.stringContaining('must have a marker'),
  });
});

it('a flavor without a usable price is rejected by name', async () => {
  await using upstream = await fakeUpstream();
  const names = ['a', 'b', 'c', 'd'];
  upstream.expect({ path: PATH }, { json: { flavors: names.map((name) => ({ ...flavor, name })) } });
  const items = await itemsOf(
    upstream,
    'a,free,hour,EUR,\nb,1,hour,EUR,\nb,1,hour,EUR,\nd,1,hour,EUR,\n,1,hour,EUR,',
  );
  const rejected = (name: string, reason: string) => ({
    kind: 'rejected',
    key: `${name}@dc1`,
    name,
    regionCode: 'dc1',
    reason,
  });
  expect(items.filter((item) => item.kind === 'rejected')).toEqual([
    {
      kind: 'rejected',
      key: 'prices line 6',
      regionCode: 'dc1',
      reason: expect.stringMatching(/^prices line 6: name is missing/),
    },
    rejected('a', 'prices line 2: price must be a decimal amount; it is "free"'),
    rejected('b', 'the price list has it on line 3 and line 4; keep one of these rows'),
    rejected('c', 'the price list has no row for it; add one, with excluded if it is not for sale'),
  ]);
  expect(items.filter((item) => item.kind === 'offer')).toHaveLength(1);
});

it('an unreadable price list fails the source before a request to Nova', async () => {
  await using upstream = await fakeUpstream();
  const options = { provider: 'Acme', region: 'dc1', prices: join(tmpdir(), 'fleetbook-no-such-prices.csv') };
  await expect(readCatalogue(adapter, upstream.url, 'token', options)).rejects.toMatchObject({
    kind: 'gone',
  });
  expect(upstream.received).toEqual([]);
});

const lists = [
  {
    title: 'flavors with the fields of Nova 2.102',
    payloads: WRITTEN,
    flavors: [
      ['a1.half', 1, 0.5],
      ['a1.two', 1, 2],
      ['a1.eight', 4, 8],
    ],
    options: {},
  },
  {
    title: 'the 7 flavors of the reference documentation, 5 of them with whole GiB,',
    payloads: RECORDED,
    flavors: [
      ['m1.tiny', 1, 0.5],
      ['m1.small', 1, 2],
      ['m1.medium', 2, 4],
      ['m1.large', 4, 8],
      ['m1.xlarge', 8, 16],
      ['m1.tiny.specs', 1, 0.5],
      ['m1.small.description', 1, 2],
    ],
    options: needsRecorded,
  },
];
for (const { title, payloads, flavors, options } of lists)
  it(`${title} are all for sale at the listed prices`, options, async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: PATH }, payloads.raw('openstack/flavors-detail-v2.102.json'));
    const items = await itemsOf(upstream, flavors.map(([name]) => `${name},0.01,hour,EUR,`).join('\n'));
    const offers = items.flatMap((item) => (item.kind === 'offer' ? [item.offer] : []));
    expect(offers.map(({ name, cpu, ram, excluded }) => [name, cpu, ram, excluded])).toEqual(
      flavors.map((flavor) => [...flavor, undefined]),
    );
    expect(items).toHaveLength(1 + offers.length);
  });
