import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { adapter as kubernetes } from '../../../src/sources/clusters/kubernetes.ts';
import { type CredentialProvider, renewingCredentials } from '../../../src/sources/credentials/provider.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter as azure } from '../../../src/sources/providers/azure.ts';
import { adapter as gcp } from '../../../src/sources/providers/gcp.ts';
import { SourceError } from '../../../src/sources/source.ts';
import { caseOf } from '../../conformance/catalogue-case.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { FakeKubernetes } from '../clusters/fake-kubernetes.ts';
import { BOTH, pg } from '../clusters/kubernetes-objects.ts';

const Names = z.object({ names: z.array(z.string()) });

function numbered(): { readonly provider: CredentialProvider; readonly issued: () => number } {
  let issued = 0;
  return {
    provider: renewingCredentials(async () => ({ token: `token-${++issued}`, lifetimeMs: 3_600_000 })),
    issued: () => issued,
  };
}

function open(baseUrl: string, token: CredentialProvider, apiKey?: string) {
  return openSourceHttp({
    baseUrl,
    credentials: 'bearer',
    token,
    deadlineMs: 5_000,
    maxBytes: 1_000_000,
    ...(apiKey === undefined ? {} : { apiKey: { credentials: 'x-goog-api-key', token: apiKey } }),
  });
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe('a request with renewable credentials', () => {
  it('is repeated once with new ones when they are rejected', async () => {
    await using upstream = await fakeUpstream();
    const { provider, issued } = numbered();
    upstream.expect({ path: '/a', headers: bearer('token-1') }, { status: 401, json: { error: 'expired' } });
    upstream.expect({ path: '/a', headers: bearer('token-2') }, { json: { names: ['a'] } });
    upstream.expect({ path: '/b', headers: bearer('token-2') }, { json: { names: ['b'] } });
    const http = open(upstream.url, provider);
    expect((await http.json('/a', Names)).data.names).toEqual(['a']);
    await Array.fromAsync((await http.at(`${upstream.url}/b`, 'same').stream('')).body);
    expect(issued()).toBe(2);
  });

  it('fails if the new ones are rejected too', async () => {
    await using upstream = await fakeUpstream();
    const { provider } = numbered();
    upstream.expect({ path: '/a', times: 2 }, { status: 401 });
    await expect(open(upstream.url, provider).json('/a', Names)).rejects.toMatchObject({
      kind: 'misconfigured',
    });
  });

  it('is not repeated for missing rights (403), nor with an unchanged token', async () => {
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/a' }, { status: 403 });
    upstream.expect({ path: '/b' }, { status: 401 });
    await expect(open(upstream.url, numbered().provider).json('/a', Names)).rejects.toThrow(SourceError);
    const fixed = { exists: true, token: async () => 'fixed', refused: () => false };
    await expect(open(upstream.url, fixed).json('/b', Names)).rejects.toThrow(SourceError);
  });

  it('is never sent if they are unavailable', async () => {
    await using upstream = await fakeUpstream();
    const failure = new SourceError('retry', 'no token', { limitsAll: true });
    const provider = renewingCredentials(() => Promise.reject(failure));
    await expect(open(upstream.url, provider).json('/a', Names)).rejects.toBe(failure);
    expect(upstream.received).toEqual([]);
  });

  it('neither sends nor shows a token that no header can carry', async () => {
    await using upstream = await fakeUpstream();
    const provider = renewingCredentials(async () => ({ token: 'bad token', lifetimeMs: 1_000 }));
    const failed = await open(upstream.url, provider)
      .json('/a', Names)
      .catch((error: unknown) => error);
    expect(failed).toMatchObject({
      kind: 'misconfigured',
      message: expect.not.stringContaining('bad token'),
    });
  });
});

it('a source whose regions all need a token is not requested region by region without one', async () => {
  const { pages, basePath, now } = await caseOf('azure');
  await using upstream = await fakeUpstream();
  for (const { path, query, json } of pages) upstream.expect({ path, query, times: 'any' }, { json });
  let requests = 0;
  // Prices are public: only the list of SKUs, of each region, needs the token.
  const provider: CredentialProvider = {
    exists: true,
    async token() {
      requests += 1;
      if (requests <= 2) return 'prices';
      throw new SourceError('retry', 'no token', { limitsAll: true });
    },
    refused: () => false,
  };
  const http = open(`${upstream.url}${basePath}`, provider);
  await expect(Array.fromAsync(azure.catalogue({ http, now: () => now }))).rejects.toThrow('no token');
  expect(requests).toBe(3);
});

it('prices of GCP are read with an optional API key, machine types with the token', async () => {
  const { pages, basePath, now } = await caseOf('gcp');
  await using upstream = await fakeUpstream();
  for (const { path, query, json } of pages) {
    const keyed = path.endsWith('/skus');
    const headers = keyed
      ? { 'x-goog-api-key': 'the-key', authorization: null }
      : { ...bearer('token-1'), 'x-goog-api-key': null };
    upstream.expect({ path, query, headers }, { json });
  }
  const http = open(`${upstream.url}${basePath}`, numbered().provider, 'the-key');
  const items = await Array.fromAsync(gcp.catalogue({ http, now: () => now }));
  expect(items.filter(({ kind }) => kind === 'offer').length).toBeGreaterThan(0);
});

it('a Kubernetes API server that rejects a token is requested once more with another', async () => {
  await using kube = await FakeKubernetes.start({ token: 'token-2', installed: BOTH });
  kube.put(pg('a'));
  const { provider, issued } = numbered();
  const http = openSourceHttp({ baseUrl: kube.url, credentials: 'none', deadlineMs: 5_000, maxBytes: 1_000 });
  const address = { url: kube.url, credentials: provider };
  const items = await Array.fromAsync(kubernetes.clusters({ http, now: () => new Date(), address }));
  expect(items).toMatchObject([{ kind: 'cluster' }]);
  expect(issued()).toBe(2);
});
