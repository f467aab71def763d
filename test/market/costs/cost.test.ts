import Big from 'big.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClusterDocument, DiskSizeUnit } from '../../../src/domain/cluster.ts';
import {
  type Amount,
  clusterCost,
  machineAmount,
  type NodePrice,
  shownAmount,
} from '../../../src/market/costs/cost.ts';
import { runs } from '../../support/random.ts';

// An independent calculation, with another library than the product's.
const Wide = Big();
Wide.DP = 60;
Wide.RM = Wide.roundHalfEven;
const BYTES = { GB: '1e9', TB: '1e12', GiB: 2 ** 30, TiB: 2 ** 40 } as const;
const MONTH = 730 * 60;

const big = ({ perMinute, perMonth }: Amount) => ({
  minute: new Wide(String(perMinute)).times('1e-12'),
  month: new Wide(String(perMonth)).times('1e-8'),
});
const near = (value: Big, places: number) => value.round(places, Wide.roundHalfEven).toFixed();

type Disk = ClusterDocument['disks'][number];

function disk(price: number | null, unit: Disk['type']['unit'], size: number, sizeUnit: DiskSizeUnit): Disk {
  return { type: { name: 'd', price: price as number, unit }, size, unit: sizeUnit, autoscaling: false };
}

const cluster = (shards: number, replicas: number, disks: Disk[] = []) => ({ shards, replicas, disks });

const price = fc
  .tuple(fc.bigInt({ min: 0n, max: 10n ** 18n }), fc.integer({ min: 0, max: 18 }))
  .map(([units, places]) => new Wide(String(units)).times(`1e-${places}`).toFixed());
const nodePrice: fc.Arbitrary<NodePrice> = fc.record({
  price,
  monthlyCap: fc.option(price, { nil: null }),
});
const anyDisk = fc
  .record({
    price: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: null, freq: 5 }),
    unit: fc.constantFrom<Disk['type']['unit']>('Binary', 'Decimal'),
    size: fc.double({ min: 0, max: 1e6, noNaN: true }),
    sizeUnit: fc.constantFrom<DiskSizeUnit>('GB', 'TB', 'GiB', 'TiB'),
  })
  .map((given) => disk(given.price, given.unit, given.size, given.sizeUnit));
const anyCluster = fc.record({
  shards: fc.integer({ min: 0, max: 100 }),
  replicas: fc.integer({ min: 0, max: 10 }),
  disks: fc.array(anyDisk, { maxLength: 4 }),
});

describe('the cost of a cluster', () => {
  it('has parts that equal an independent calculation, and that add up exactly', () => {
    fc.assert(
      fc.property(anyCluster, fc.option(nodePrice, { nil: null }), (given, node) => {
        const cost = clusterCost(given, node);
        const nodes = given.shards * given.replicas;
        expect(cost.nodes).toBe(nodes);
        let [minute, month] = [new Wide(0), new Wide(0)];
        const check = (amount: Amount | null, perMinute: Big, perMonth: Big) => {
          if (!amount) throw new Error('a known price has an amount');
          const found = big(amount);
          expect([found.minute.toFixed(), found.month.toFixed()]).toEqual([
            near(perMinute, 12),
            near(perMonth, 8),
          ]);
          minute = minute.plus(found.minute);
          month = month.plus(found.month);
        };
        if (node) {
          const each = new Wide(node.price);
          const full = each.times(MONTH);
          const isCapped = node.monthlyCap !== null && full.gt(node.monthlyCap);
          check(
            cost.machine,
            each.times(nodes),
            (isCapped ? new Wide(node.monthlyCap ?? 0) : full).times(nodes),
          );
        } else expect(cost.machine).toBeNull();
        for (const [i, { type, size, unit }] of given.disks.entries()) {
          if (type.price === null) {
            expect(cost.disks[i]).toBeNull();
            continue;
          }
          const pricedUnits = new Wide(size)
            .times(BYTES[unit])
            .div(BYTES[type.unit === 'Binary' ? 'GiB' : 'GB']);
          const whole = pricedUnits.times(type.price).times(nodes);
          check(cost.disks[i] ?? null, whole, whole.times(MONTH));
        }
        const total = big(cost.known);
        expect([total.minute.toFixed(), total.month.toFixed()]).toEqual([minute.toFixed(), month.toFixed()]);
        const isKnown = node !== null && given.disks.every(({ type }) => type.price !== null);
        expect(cost.isComplete).toBe(isKnown);
      }),
      { numRuns: runs(300) },
    );
  });

  it('multiplies machine and disks by shards and replicas', () => {
    const cost = clusterCost(cluster(3, 2, [disk(0.0001, 'Decimal', 100, 'GB')]), {
      price: '0.001',
      monthlyCap: null,
    });
    expect(shownAmount(cost.known)).toEqual({ per_minute: 0.066, per_month: 2890.8 });
    expect(cost.nodes).toBe(6);
  });

  it.each([
    ['Decimal', 1, 'TB', 1000],
    ['Decimal', 1, 'GiB', 1.073741824],
    ['Decimal', 2, 'TiB', 2199.023255552],
    ['Binary', 1, 'TiB', 1024],
    ['Binary', 1.073741824, 'GB', 1],
    ['Binary', 0.5, 'TB', 465.661287307739],
  ] as const)('counts a disk priced by %s: %s %s are %s units', (unit, size, sizeUnit, units) => {
    const [found] = clusterCost(cluster(1, 1, [disk(1, unit, size, sizeUnit)]), null).disks;
    expect(shownAmount(found as Amount).per_minute).toBeCloseTo(units, 12);
  });

  it('is bounded by the cap of each node in a month, and not in a minute', () => {
    const capped = machineAmount({ price: '0.01', monthlyCap: '36' }, 2);
    expect(shownAmount(capped)).toEqual({ per_minute: 0.02, per_month: 72 });
    expect(shownAmount(machineAmount({ price: '0.0001', monthlyCap: '36' }, 2)).per_month).toBe(8.76);
  });

  it('is incomplete without a price, and counts the other parts', () => {
    const disks = [disk(null, 'Decimal', 10, 'GB'), disk(0.001, 'Decimal', 10, 'GB')];
    const cost = clusterCost(cluster(1, 1, disks), null);
    expect([cost.machine, cost.disks[0], cost.isComplete]).toEqual([null, null, false]);
    expect(shownAmount(cost.known)).toEqual({ per_minute: 0.01, per_month: 438 });
  });

  it('is zero without nodes', () => {
    const cost = clusterCost(cluster(0, 3, [disk(0.001, 'Decimal', 10, 'GB')]), {
      price: '1',
      monthlyCap: '5',
    });
    expect([shownAmount(cost.known), cost.isComplete]).toEqual([{ per_minute: 0, per_month: 0 }, true]);
  });
});
