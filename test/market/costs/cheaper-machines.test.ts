import { describe, expect, it } from 'vitest';
import type { PriceBookEntry } from '../../../src/domain/prices/price-book.ts';
import { costClusters, type KnownMachine } from '../../../src/market/costs/cheaper-machines.ts';
import { nodePriceBy } from '../../../src/market/costs/cost.ts';

const NOW = Date.parse('2026-06-01T00:00:00Z');
const machine = (id: number, fields: Partial<KnownMachine> & { price?: string } = {}): KnownMachine => ({
  id,
  name: `m${id}`,
  regionId: 1,
  providerId: 1,
  cpu: 2,
  bytes: 4e9,
  architecture: null,
  cpuKind: null,
  list: { price: fields.price ?? '0.001', monthlyCap: null },
  isPublished: true,
  ...fields,
});
const cluster = (machineId: number) => ({ machineId, shards: 1, replicas: 2, disks: [] });
const entry = (fields: Partial<PriceBookEntry>): PriceBookEntry => ({
  id: 9,
  providerId: undefined,
  regionId: undefined,
  family: undefined,
  machineId: undefined,
  term: undefined,
  discount: undefined,
  price: undefined,
  from: '2026-01-01T00:00:00Z',
  to: undefined,
  ...fields,
});
const bestOf = (machines: readonly KnownMachine[], entries: readonly PriceBookEntry[] = []) =>
  costClusters([cluster(1)], machines, entries, NOW)[0]?.best;

describe('the best machine for a cluster', () => {
  it('is the cheapest one of the region with at least the same size, and the saving counts all nodes', () => {
    const found = bestOf([
      machine(1),
      machine(2, { price: '0.0008' }),
      machine(3, { price: '0.0009' }),
      machine(4, { price: '0.0001', regionId: 2 }),
      machine(5, { price: '0.0001', cpu: 1 }),
      machine(6, { price: '0.0001', bytes: 3.9e9 }),
      machine(7, { price: '0.0001', isPublished: false }),
    ]);
    // 0.0002 × 43,800 minutes × 2 nodes.
    expect(found).toMatchObject({ machine: { id: 2 }, saving: 1_752_000_000n });
  });

  it('has no other known architecture and no other kind of CPU', () => {
    const used = machine(1, { architecture: 'x86_64', cpuKind: 'dedicated' });
    expect(bestOf([used, machine(2, { price: '0.0005', architecture: 'arm64' })])).toBeNull();
    expect(bestOf([used, machine(2, { price: '0.0005', cpuKind: 'shared' })])).toBeNull();
    expect(bestOf([used, machine(2, { price: '0.0005' })])).toMatchObject({ machine: { id: 2 } });
  });

  it('follows the own prices and the monthly cap', () => {
    const machines = [machine(1), machine(2, { price: '0.0012' })];
    expect(bestOf(machines)).toBeNull();
    expect(bestOf(machines, [entry({ machineId: 2, discount: '50' })])).toMatchObject({
      machine: { id: 2 },
      saving: 3_504_000_000n,
    });
    const capped = machine(2, { list: { price: '0.0012', monthlyCap: '20' } });
    expect(bestOf([machine(1), capped])).toMatchObject({ machine: { id: 2 }, saving: 4_760_000_000n });
  });

  it('is unknown for a machine without a price', () => {
    const [found] = costClusters([cluster(1)], [machine(1, { list: null }), machine(2)], [], NOW);
    expect(found).toMatchObject({ best: null, cost: { machine: null, isComplete: false } });
  });
});

it('a discount lowers the monthly cap too, and a fixed price has none', () => {
  const list = { price: '0.001', monthlyCap: '30' };
  expect(nodePriceBy(list, entry({ discount: '10' }))).toEqual({ price: '0.0009', monthlyCap: '27' });
  expect(nodePriceBy(list, entry({ price: '0.0005' }))).toEqual({ price: '0.0005', monthlyCap: null });
  expect(nodePriceBy(null, entry({ discount: '10' }))).toBeNull();
  expect(nodePriceBy(list, undefined)).toEqual(list);
});
