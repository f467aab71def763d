import { expect, it } from 'vitest';
import { adapter } from '../../../src/sources/clusters/fleetbook.ts';
import { fixedCredentials } from '../../../src/sources/credentials/provider.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import type { ClusterItem, Validator } from '../../../src/sources/source.ts';
import { contractCluster } from '../../conformance/contract-cluster.ts';
import { listen, testApi } from '../../http/harness.ts';
import { CLUSTERS } from '../../http/readers.ts';
import { fakeUpstream } from '../../support/fake-upstream.ts';
import { onlyClusters, readClusterItems } from './read.ts';

async function itemsOf(
  url: string,
  token: string,
  stored: readonly Validator[] = [],
): Promise<ClusterItem[]> {
  const http = openSourceHttp({
    baseUrl: url,
    credentials: adapter.credentials,
    token,
    validators: new Map(stored.map((validator) => [validator.url, validator])),
    deadlineMs: 5_000,
    maxBytes: 1_000_000,
  });
  const now = () => new Date('2026-03-01T00:00:00Z');
  return await Array.fromAsync(
    adapter.clusters({ http, now, address: { url, credentials: fixedCredentials(token) } }),
  );
}

/** The answer's header with the age of the other instance's data. */
const AS_OF = { 'fleetbook-as-of': '2026-02-28T23:59:00.000Z' };

const clustersIn = (items: readonly ClusterItem[]) =>
  onlyClusters(items.filter((item) => item.kind !== 'validator' && item.kind !== 'as-of'));

it('reads this service’s answer to an organization’s token, in one request', async () => {
  await using api = await testApi();
  const url = `http://127.0.0.1:${await listen(api.app)}`;
  const items = await itemsOf(url, api.token);
  const clusters = clustersIn(items);
  expect(clusters.map(({ key }) => key)).toEqual((CLUSTERS[1] ?? []).map(({ slug }) => slug));
  expect(clusters[0]).toEqual({
    ...contractCluster('USD'),
    provider: 'Hetzner',
    region: { code: 'fsn1', name: 'Falkenstein' },
    user: { firstName: 'Zoë', lastName: 'Doe' },
    machine: { cpu: 2, ram: 8, ramUnit: 'Decimal' },
  });
  const validators = items.flatMap((item) => (item.kind === 'validator' ? [item.validator] : []));
  expect(validators).toHaveLength(1);
  expect(await itemsOf(url, api.token, validators)).toEqual([
    { kind: 'as-of', time: '2026-11-20T12:00:00.000000Z' },
    { kind: 'unmodified', validator: validators[0] },
  ]);
});

it('reads only the clusters of the token’s organization, or an empty list', async () => {
  await using api = await testApi();
  const url = `http://127.0.0.1:${await listen(api.app)}`;
  const second = await itemsOf(url, api.tokens.issue({ organizationId: 2 }));
  expect(clustersIn(second).map(({ key }) => key)).toEqual(['elsewhere']);
  expect(clustersIn(await itemsOf(url, api.tokens.issue({ organizationId: 3 })))).toEqual([]);
});

it('is misconfigured if the other instance revoked its token or changed its scope', async () => {
  await using api = await testApi();
  const url = `http://127.0.0.1:${await listen(api.app)}`;
  for (const token of [
    api.tokens.issue({ state: 'revoked' }),
    api.tokens.issue({ scopes: ['machines:read'] }),
  ]) {
    await expect(itemsOf(url, token)).rejects.toMatchObject({
      kind: 'misconfigured',
      message: expect.not.stringContaining(token),
    });
  }
});

const ROW = (CLUSTERS[1] ?? [])[0];

it('prices disks in the currency of the options', async () => {
  await using upstream = await fakeUpstream();
  upstream.expect({ path: '/v1/clusters' }, { json: [ROW], headers: AS_OF });
  const [cluster] = clustersIn(await readClusterItems(adapter, upstream.url, { currency: 'EUR' }));
  expect(cluster?.disks?.map((disk) => disk.type.price?.currency)).toEqual(['EUR']);
});

it.each([
  ['slug', '..', 'must be made of letters'],
  ['slug', 'a/b', 'must be made of letters'],
  ['shards', -1, 'must be a whole number, 0 or above'],
  ['created_at', '14.02.2022', 'must be an instant'],
  ['disks', null, 'expected array'],
])('rejects a cluster whose %s is %j, and reads the others', async (field, value, text) => {
  await using upstream = await fakeUpstream();
  upstream.expect({ path: '/v1/clusters' }, { json: [{ ...ROW, [field]: value }, ROW], headers: AS_OF });
  const items = await readClusterItems(adapter, upstream.url);
  expect(items).toHaveLength(3);
  expect(items[0]).toEqual({ kind: 'as-of', time: '2026-02-28T23:59:00.000000Z' });
  expect(items[1]).toMatchObject({ kind: 'rejected', reason: expect.stringMatching(`^${field} .*${text}`) });
  expect(items[2]?.kind).toBe('cluster');
});
