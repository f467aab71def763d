import { describe, expect, it } from 'vitest';
import { fakeUpstream } from './fake-upstream.ts';

describe('the strict fake upstream', () => {
  it('answers expected calls in the order of their announcement', async () => {
    await using upstream = await fakeUpstream();
    const first = upstream.expect(
      { path: '/a', query: { page: '1' }, headers: { 'x-key': /^s/ } },
      { json: { n: 1 } },
    );
    upstream.expect({ path: '/a', query: { page: '1' } }, { status: 202, raw: 'second' });
    upstream.expect({ method: 'POST', path: '/b' }, { json: [], headers: { etag: '"1"' } });

    const one = await fetch(`${upstream.url}/a?page=1`, { headers: { 'x-key': 'secret' } });
    expect(await one.json()).toEqual({ n: 1 });
    expect((await first.arrived).headers['x-key']).toBe('secret');
    const two = await fetch(`${upstream.url}/a?page=1`);
    expect([two.status, await two.text()]).toEqual([202, 'second']);
    const three = await fetch(`${upstream.url}/b`, { method: 'POST' });
    expect(three.headers.get('etag')).toBe('"1"');
    expect(upstream.received.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /a',
      'GET /a',
      'POST /b',
    ]);
  });

  it.each([
    ['another path', '/b?page=1', {}],
    ['an additional parameter', '/a?page=1&more=1', {}],
    ['a missing parameter', '/a', {}],
    ['a forbidden header', '/a?page=1', { authorization: 'Bearer x' }],
  ])('fails the test on a call with %s', async (_, path, headers) => {
    const upstream = await fakeUpstream();
    upstream.expect({ path: '/a', query: { page: '1' }, headers: { authorization: null }, times: 'any' }, {});
    expect((await fetch(upstream.url + path, { headers })).status).toBe(501);
    await expect(upstream[Symbol.asyncDispose]()).rejects.toThrow(`unexpected call: GET ${path}`);
  });

  it('fails the test on one call more than expected', async () => {
    const upstream = await fakeUpstream();
    upstream.expect({ path: '/a' }, {});
    await fetch(`${upstream.url}/a`);
    await fetch(`${upstream.url}/a`);
    await expect(upstream[Symbol.asyncDispose]()).rejects.toThrow('GET /a (once more than expected)');
  });

  it('fails the test on a missing expected call', async () => {
    const upstream = await fakeUpstream();
    upstream.expect({ path: '/a', times: 2 }, {});
    await fetch(`${upstream.url}/a`);
    await expect(upstream[Symbol.asyncDispose]()).rejects.toThrow('expected call did not come again: GET /a');
  });

  it.each(['length', 'chunked'] as const)('can break off a body that ends by %s', async (framing) => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/a' }, { raw: 'half and half', cutAfter: 4, framing });
    const response = await fetch(`${upstream.url}/a`);
    await expect(response.text()).rejects.toThrow('terminated');
  });

  it('can break off a body that ends with the connection, which then appears complete', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/a' }, { raw: 'half and half', cutAfter: 4, framing: 'close' });
    const response = await fetch(`${upstream.url}/a`);
    expect(await response.text()).toBe('half');
  });

  it('delays an answer until it is released, before it or in the middle of the body', async () => {
    await using upstream = await fakeUpstream();
    const released = Promise.withResolvers<void>();
    const { arrived } = upstream.expect({ path: '/a' }, { raw: 'late', after: released.promise });
    upstream.expect({ path: '/b' }, { raw: 'slowly', stall: { afterBytes: 4, until: released.promise } });
    const late = fetch(`${upstream.url}/a`);
    const slow = await fetch(`${upstream.url}/b`);
    const reader = (slow.body ?? expect.unreachable()).getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('slow');
    await arrived;
    released.resolve();
    expect(await (await late).text()).toBe('late');
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('ly');
  });

  it('closes while a delayed answer is still waiting', async () => {
    const upstream = await fakeUpstream();
    const { arrived } = upstream.expect({ path: '/a' }, { after: new Promise(() => {}) });
    const held = expect(fetch(`${upstream.url}/a`)).rejects.toThrow('fetch failed');
    await arrived;
    await upstream[Symbol.asyncDispose]();
    await held;
  });
});
