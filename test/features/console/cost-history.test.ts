import { describe, expect, it } from 'vitest';
import { costsOverTime } from '../../../src/features/console/routes/costs/cost-history.ts';
import type { StoredCluster } from '../../../src/market/costs/inputs.ts';
import { clusterSummer } from '../../../src/market/costs/organization.ts';
import { storedMachine } from '../../market/stored-machine.ts';

const cluster = (id: number, provider: string, machineId: number, diskPrice?: number): StoredCluster => ({
  ...{ id, slug: `c${id}`, name: `C${id}`, status: 'Active', sourceId: 's', createdAt: '', creation: null },
  ...{
    region: { id: provider.length, name: 'r', code: 'r' },
    provider: { id: provider.length, name: provider },
  },
  ...{ machineId, shards: 1, replicas: 1 },
  disks:
    diskPrice === undefined
      ? []
      : [{ type: { name: 'd', price: diskPrice, unit: 'Decimal' }, size: 1, unit: 'GB', autoscaling: false }],
});
/** A price of 0.001 a minute is 43.8 a month. */
const price = (machineId: number, from: number, to: number | null = null) => ({
  machineId,
  value: '0.001',
  from,
  to,
});

function linesAt(
  clusters: readonly StoredCluster[],
  prices: readonly ReturnType<typeof price>[],
  times = [10, 20, 30],
) {
  const machines = new Map([1, 2, 3, 4].map((id) => [id, storedMachine({ id, price: null })]));
  const inputs = { clusters: clusters.map(clusterSummer()), machines, entries: [] };
  return costsOverTime(inputs, { prices, caps: [] }, times).lines;
}

describe('costs over time', () => {
  it('have a gap while a price is unknown, with what is known of the sum', () => {
    const lines = linesAt([cluster(1, 'A', 1), cluster(2, 'A', 2)], [price(1, 10), price(2, 20, 30)]);
    expect(lines).toEqual([{ name: 'A', values: [null, 87.6, null], known: [43.8, 87.6, 43.8] }]);
  });

  it('keep a provider whose cluster never had a price, and know nothing without any price', () => {
    const [a] = linesAt([cluster(1, 'A', 1), cluster(2, 'A', 3)], [price(1, 20)]);
    expect(a).toEqual({ name: 'A', values: [null, null, null], known: [null, 43.8, 43.8] });
  });

  it('have a gap for a disk without a price', () => {
    const unknown = { ...cluster(1, 'A', 1, 0) };
    const [disk] = unknown.disks;
    const disks = disk ? [{ ...disk, type: { ...disk.type, price: null as never } }] : [];
    const [a] = linesAt([{ ...unknown, disks }], [price(1, 0)]);
    expect(a).toMatchObject({ values: [null, null, null], known: [43.8, 43.8, 43.8] });
  });

  it('begin with the total of several providers, which has the gaps of each of them', () => {
    const lines = linesAt([cluster(1, 'A', 1), cluster(2, 'Bb', 2)], [price(1, 0), price(2, 20)]);
    expect(lines.map(({ name, values }) => [name, values])).toEqual([
      ['total', [null, 87.6, 87.6]],
      ['A', [43.8, 43.8, 43.8]],
      ['Bb', [null, 43.8, 43.8]],
    ]);
    expect(lines[0]?.known).toEqual([43.8, 87.6, 87.6]);
  });

  it('have one line for the other providers', () => {
    const clusters = ['A', 'Bb', 'Ccc', 'Dddd'].map((name, i) => cluster(i + 1, name, i + 1));
    const lines = linesAt(
      clusters,
      [1, 2, 3, 4].map((id) => price(id, 0)),
    );
    expect(lines.map(({ name, values }) => [name, values[0]])).toEqual([
      ['total', 175.2],
      ['A', 43.8],
      ['Bb', 43.8],
      ['other providers', 87.6],
    ]);
  });
});
