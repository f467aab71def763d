import { describe, expect, it } from 'vitest';
import { searchApi } from '../../../src/features/search/routes.ts';
import { SearchUnavailable } from '../../../src/market/read-regions.ts';
import { Unavailable } from '../../../src/snapshot/document/answer.ts';
import { type TestApi, testApi } from '../../http/harness.ts';

const get = ({ app, token }: TestApi, url: string, headers: Record<string, string> = {}) =>
  app.inject({ url, headers: { authorization: `Bearer ${token}`, ...headers } });

interface Found {
  readonly machines: readonly { readonly id: number; readonly price: number }[];
  readonly next: string | null;
  readonly version: string;
  readonly moved: boolean;
}

async function search(api: TestApi, query: string): Promise<Found> {
  const response = await get(api, `/v1/machines/search?${query}`);
  expect([response.statusCode, response.headers['content-type']], query).toEqual([200, 'application/json']);
  return response.json();
}

const ids = ({ machines }: Found) => machines.map(({ id }) => id);

describe('/v1/machines/search', () => {
  it('returns machines with their facts, and the headers of every answer', async () => {
    await using api = await testApi();
    const response = await get(api, '/v1/machines/search?limit=1&region=3');
    expect(response.json()).toEqual({
      machines: [
        {
          id: 300,
          name: 'cax11',
          ram: 4,
          cpu: 2,
          price: 0.000103791666666667,
          ram_unit: 'Decimal',
          provider: { id: 5, name: 'Hetzner' },
          region: { id: 3, name: 'Falkenstein', code: 'fsn1' },
          architecture: 'arm64',
          generation: null,
          cpu_kind: 'shared',
          local_disk: 40,
          network: null,
          included_traffic: null,
          included_ipv4: null,
          orderable_until: null,
          retires_at: null,
          available_share: 1,
        },
      ],
      next: expect.stringMatching(/^[\w-]+$/),
      ram_unit: 'AsSold',
      version: expect.stringMatching(/^[\w-]{22}$/),
      moved: false,
    });
    expect(response.headers).toMatchObject({
      'fleetbook-tier': 'memory',
      'fleetbook-as-of': '2026-11-20T12:00:00Z',
      'fleetbook-currency': 'USD',
      'cache-control': 'private, no-cache',
    });
    const again = await get(api, '/v1/machines/search?limit=1&region=3', {
      'if-none-match': String(response.headers.etag),
    });
    expect(again.statusCode).toBe(304);
  });

  it('reaches all machines by cursors', async () => {
    await using api = await testApi();
    const found: number[] = [];
    for (let next: string | null = ''; next !== null; ) {
      const page = await search(api, `limit=10&sort=-ram${next && `&cursor=${next}`}`);
      expect(page.moved).toBe(false);
      found.push(...ids(page));
      next = page.next;
    }
    expect([found.length, new Set(found).size, found[0], found.at(-1)]).toEqual([43, 43, 439, 400]);
  });

  it.each<[string, number[]]>([
    ['region=3,99&sort=-cpu', [302, 301, 300]],
    ['provider=6', []],
    ['min_cpu=78&sort=cpu', [438, 439]],
    ['min_cpu=8&max_cpu=2', []],
    ['max_ram=4&ram_unit=Decimal', [300, 400]],
    // 4 GB are 3.725 GiB.
    ['max_ram=3.725&ram_unit=Binary', []],
    ['max_ram=3.726&ram_unit=Binary', [300, 400]],
    ['max_ram=3.999', []],
    ['max_ram=4', [300, 400]],
    ['min_ram=4.001&region=3', [301, 302]],
    ['min_ram_per_cpu=2&region=3', [300, 301, 302]],
    ['min_ram_per_cpu=2&ram_unit=Binary', []],
    ['min_ram_per_cpu=2.001&ram_unit=Decimal', []],
    ['max_ram_per_cpu=2&ram_unit=Decimal&region=3', [300, 301, 302]],
    ['max_price=0.000103791666666667', [300, 400]],
    ['name=AX401', [439]],
    ['architecture=x86_64', []],
    ['cpu_kind=shared&region=3&limit=2', [300, 301]],
  ])('finds by %s', async (query, wanted) => {
    await using api = await testApi();
    expect(ids(await search(api, query))).toEqual(wanted);
  });

  it('returns the requested fields, in the order of the schema', async () => {
    await using api = await testApi();
    const { machines } = await search(api, 'fields=price,id,id&limit=1');
    expect(JSON.stringify(machines)).toBe('[{"id":300,"price":0.000103791666666667}]');
  });

  it.each([
    ['min_cpu', '0'],
    ['max_cpu', '100001'],
    ['max_cpu', '1e3'],
    ['min_ram', '0'],
    ['min_ram', '-1'],
    ['max_ram', '1.2345'],
    ['ram_unit', 'binary'],
    ['max_price', '0.0'],
    ['max_price', '1,5'],
    ['min_ram_per_cpu', ''],
    ['provider', '1,'],
    ['provider', '5,x'],
    ['region', Array.from({ length: 101 }, (_, i) => i + 1).join()],
    ['name', ''],
    ['name', 'a%0Ab'],
    ['name', 'x'.repeat(101)],
    ['architecture', 'X86'],
    ['cpu_kind', 'both'],
    ['sort', 'name'],
    ['sort', '--price'],
    ['limit', '501'],
    ['limit', '5&limit=5'],
    ['fields', 'id,secret'],
    ['cursor', 'x'],
    ['cursor', '%00'],
  ])('rejects %s=%s', async (name, value) => {
    await using api = await testApi();
    const response = await get(api, `/v1/machines/search?${name}=${value}`);
    expect([response.statusCode, response.json()]).toMatchObject([
      400,
      { type: 'urn:fleetbook:problem:invalid-parameter', parameter: name },
    ]);
  });

  it('rejects the cursor of another question', async () => {
    await using api = await testApi();
    const { next } = await search(api, 'limit=1&sort=cpu');
    const response = await get(api, `/v1/machines/search?limit=1&sort=ram&cursor=${next}`);
    expect([response.statusCode, response.json().parameter]).toEqual([400, 'cursor']);
    expect(ids(await search(api, `limit=2&sort=cpu&cursor=${next}`))).toEqual([400, 301]);
  });

  it('rejects unknown parameters, after authentication', async () => {
    await using api = await testApi();
    const response = await get(api, '/v1/machines/search?max_prize=1');
    expect([response.statusCode, response.json()]).toMatchObject([
      400,
      { type: 'urn:fleetbook:problem:unknown-parameter', parameter: 'max_prize' },
    ]);
    expect((await api.app.inject({ url: '/v1/machines/search?max_prize=1' })).statusCode).toBe(401);
    const token = api.tokens.issue({ scopes: ['clusters:read'] });
    expect((await get({ ...api, token }, '/v1/machines/search?max_prize=1')).statusCode).toBe(403);
  });

  it.each([
    [new SearchUnavailable('The index does not fit.', 60), '60', 'The index does not fit.'],
    [new Unavailable('PostgreSQL is down'), '1', 'No fresh answer is to be had'],
  ])('states why it cannot be answered: %s', async (error, pause, detail) => {
    const fails = () => Promise.reject(error);
    await using api = await testApi({
      features: async () => [searchApi({ search: fails, firstAvailable: fails, recommend: fails })],
    });
    for (const url of [
      '/v1/machines/search',
      '/v1/machines/first-available?ids=1',
      '/v1/machines/recommend?cpu=1&ram=1',
    ]) {
      const response = await get(api, url);
      expect([response.statusCode, response.headers['retry-after']]).toEqual([503, pause]);
      expect(response.json().detail).toContain(detail);
    }
  });
});

describe('/v1/machines/recommend', () => {
  const recommend = async (query: string) => {
    await using api = await testApi();
    return get(api, `/v1/machines/recommend?${query}`);
  };

  it('returns the cheapest machine that fits, and its price', async () => {
    const response = await recommend('cpu=3&ram=4&ram_unit=Decimal&hours=1.5&disk=40');
    expect([response.statusCode, response.json()]).toMatchObject([
      200,
      {
        recommendations: [
          {
            machine: { id: 301, cpu: 4, ram: 8, local_disk: 40 },
            hours: 1.5,
            total: 0.0186825,
            computed: '0.000207583333333334 a minute × 60 × 1.5 hours',
          },
        ],
      },
    ]);
  });

  it.each([
    ['cpu=2&ram=8', 301, 'AsSold'],
    ['cpu=2&ram=8&ram_unit=AsSold', 301, 'AsSold'],
    ['cpu=2&ram=8&ram_unit=Decimal', 301, 'Decimal'],
    // 8 GB are less than 8 GiB.
    ['cpu=2&ram=8&ram_unit=Binary', 302, 'Binary'],
  ])('answers %s with machine %i, and states that memory was counted %s', async (query, id, ram_unit) => {
    expect((await recommend(query)).json()).toMatchObject({
      recommendations: [{ machine: { id } }],
      ram_unit,
    });
  });

  it.each(['cpu=1&ram=1&disk=40.001', 'cpu=79&ram=1&region=3', 'cpu=1&ram=1&provider=1'])(
    'returns none for %s',
    async (query) => {
      expect((await recommend(query)).json().recommendations).toEqual([]);
    },
  );

  it('accepts 0 of everything that may be needed', async () => {
    const [without, none] = await Promise.all([
      recommend('cpu=1&ram=1'),
      recommend('cpu=1&ram=1&disk=0&storage=0&traffic=0.000&ipv4=0'),
    ]);
    expect([none.statusCode, none.json()]).toEqual([200, without.json()]);
    expect((await recommend('cpu=1&ram=1&storage=-1')).json()).toMatchObject({
      parameter: 'storage',
      detail: expect.stringContaining(
        'a decimal number from 0, of at most 9 digits and 3 decimals, not "-1"',
      ),
    });
  });

  it.each(['ram', 'cpu'])('requires %s', async (name) => {
    const response = await recommend(name === 'cpu' ? 'ram=1' : 'cpu=1');
    expect([response.statusCode, response.json().parameter]).toEqual([400, name]);
    expect(response.json().detail).toContain('must be given once');
  });

  it.each(['0', '0.00', '0.001', '87600.01', '1e3'])('rejects %s hours', async (hours) => {
    expect((await recommend(`cpu=1&ram=1&hours=${hours}`)).json().parameter).toBe('hours');
  });
});
