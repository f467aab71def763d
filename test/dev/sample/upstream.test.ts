import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  SAMPLE_HETZNER_TOKEN,
  type SampleUpstream,
  startSampleUpstream,
} from '../../../src/dev/sample/upstream.ts';

const authorization = `Bearer ${SAMPLE_HETZNER_TOKEN}`;

const Pagination = z.strictObject({
  page: z.int(),
  per_page: z.int(),
  previous_page: z.int().nullable(),
  next_page: z.int().nullable(),
  last_page: z.int(),
  total_entries: z.int(),
});
const Meta = z.strictObject({ pagination: Pagination });
const ServerTypes = z.strictObject({
  server_types: z.array(z.looseObject({ name: z.string() })),
  meta: Meta,
});
const Locations = z.strictObject({ locations: z.array(z.looseObject({ name: z.string() })), meta: Meta });
const LinodePage = z.strictObject({
  data: z.array(z.looseObject({})),
  page: z.int(),
  pages: z.int(),
  results: z.int(),
});
const LinodeErrors = z.object({ errors: z.array(z.object({ reason: z.string() })).min(1) });

async function get(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers });
  const body: unknown = await response.json();
  return { status: response.status, body };
}

describe('the sample upstream', () => {
  it('pages a Hetzner list as requested and states the page', async () => {
    await using upstream = await startSampleUpstream();
    const names: string[] = [];
    let next: number | null = 1;
    while (next !== null) {
      const { body } = await get(`${upstream.hetznerUrl}/v1/server_types?page=${next}&per_page=5`, {
        authorization,
      });
      const { server_types, meta } = ServerTypes.parse(body);
      const { pagination } = meta;
      expect(pagination).toMatchObject({ page: next, per_page: 5, last_page: 3, total_entries: 12 });
      expect(pagination.previous_page).toBe(next === 1 ? null : next - 1);
      names.push(...server_types.map((type) => type.name));
      next = pagination.next_page;
    }
    expect(new Set(names).size).toBe(12);
  });

  it('gives a Hetzner page of 25 by default, and none beyond the last', async () => {
    await using upstream = await startSampleUpstream();
    const first = await get(`${upstream.hetznerUrl}/v1/locations`, { authorization });
    expect(Locations.parse(first.body).meta.pagination).toEqual({
      page: 1,
      per_page: 25,
      previous_page: null,
      next_page: null,
      last_page: 1,
      total_entries: 6,
    });
    const beyond = await get(`${upstream.hetznerUrl}/v1/locations?page=2`, { authorization });
    expect(Locations.parse(beyond.body)).toMatchObject({
      locations: [],
      meta: { pagination: { page: 2, previous_page: 1, next_page: null } },
    });
  });

  it.each(['per_page=51', 'per_page=0', 'page=0', 'page=x'])(
    'rejects %s for a Hetzner list',
    async (query) => {
      await using upstream = await startSampleUpstream();
      const { status } = await get(`${upstream.hetznerUrl}/v1/locations?${query}`, { authorization });
      expect(status).toBe(400);
    },
  );

  it('requires the bearer token for Hetzner and none for Linode', async () => {
    await using upstream = await startSampleUpstream();
    expect((await get(`${upstream.hetznerUrl}/v1/locations`)).status).toBe(401);
    expect((await get(`${upstream.hetznerUrl}/v1/locations`, { authorization: 'Bearer wrong' })).status).toBe(
      401,
    );
    expect((await get(`${upstream.linodeUrl}/v4/regions`)).status).toBe(200);
  });

  it('pages a Linode list by 100, in the sizes that Linode allows', async () => {
    await using upstream = await startSampleUpstream();
    const path = `${upstream.linodeUrl}/v4beta/regions/availability`;
    const page = async (query: string) => LinodePage.parse((await get(`${path}${query}`)).body);
    const [first, second, small] = await Promise.all([
      page(''),
      page('?page=2'),
      page('?page=5&page_size=25'),
    ]);
    expect(first).toMatchObject({ page: 1, pages: 2, results: 108 });
    expect(first.data).toHaveLength(100);
    expect(second.data).toHaveLength(8);
    expect(small).toMatchObject({ page: 5, pages: 5, data: second.data });
  });

  it.each(['page_size=24', 'page_size=501', 'page=3', 'page=-1'])(
    'rejects %s for a Linode list',
    async (query) => {
      await using upstream = await startSampleUpstream();
      const { status, body } = await get(`${upstream.linodeUrl}/v4beta/regions/availability?${query}`);
      expect(status).toBe(400);
      expect(LinodeErrors.parse(body).errors[0]?.reason).toContain('page');
    },
  );

  it('answers 404 for unknown paths and 405 for other methods than GET', async () => {
    await using upstream = await startSampleUpstream();
    expect((await get(`${upstream.hetznerUrl}/v1/servers`, { authorization })).status).toBe(404);
    expect((await get(`${upstream.url}//`)).status).toBe(404);
    const posted = await fetch(upstream.clustersUrl, { method: 'POST' });
    expect(posted.status).toBe(405);
    expect(posted.headers.get('allow')).toBe('GET');
  });

  it('closes its port when disposed of, although a connection is still open', async () => {
    let closed: SampleUpstream;
    {
      await using upstream = await startSampleUpstream();
      closed = upstream;
      const socket = connect(Number(new URL(upstream.url).port), '127.0.0.1');
      await new Promise((resolve) => socket.once('connect', resolve));
      socket.on('error', () => {});
    }
    await expect(fetch(closed.url)).rejects.toThrow('fetch failed');
  });

  it('reports that its port is in use', async () => {
    await using upstream = await startSampleUpstream();
    const port = Number(new URL(upstream.url).port);
    await expect(startSampleUpstream({ port })).rejects.toThrow('EADDRINUSE');
  });
});
