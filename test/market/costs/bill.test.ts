import Big from 'big.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  BILL_PARTS,
  type BilledMachine,
  type BilledPrice,
  billOf,
  type Needs,
} from '../../../src/market/costs/bill.ts';
import { runs } from '../../support/random.ts';

const amount = (digits: number, most = 10n ** 6n) =>
  fc
    .tuple(fc.bigInt({ min: 0n, max: most }), fc.bigInt({ min: 0n, max: 10n ** BigInt(digits) - 1n }))
    .map(([whole, rest]) => `${whole}.${String(rest).padStart(digits, '0')}`);
const tiers = fc
  .uniqueArray(fc.integer({ min: 1, max: 50_000 }), { maxLength: 3 })
  .chain((from) =>
    fc.tuple(
      ...['0', ...from.sort((a, b) => a - b).map(String)].map((at) =>
        amount(9, 3n).map((price) => ({ from: at, price })),
      ),
    ),
  );
const price = (item: BilledPrice['item'], units: BilledPrice['unit'][]) =>
  fc.record({
    item: fc.constant(item),
    isDefault: fc.boolean(),
    unit: fc.constantFrom(...units),
    tiers,
  });
const machine: fc.Arbitrary<BilledMachine> = fc.record({
  price: amount(18, 3n),
  monthlyCap: fc.option(amount(2, 1000n), { nil: null }),
  includedTraffic: fc.option(fc.integer({ min: 0, max: 20_000 })),
  includedIpv4: fc.option(fc.integer({ min: 0, max: 3 })),
  prices: fc.option(
    fc
      .tuple(
        price('block_storage', ['GB', 'GiB']),
        price('traffic_out', ['GB', 'GiB']),
        price('ipv4', ['address']),
      )
      .map((all): BilledPrice[] => all),
  ),
});
const needs: fc.Arbitrary<Needs> = fc.record({
  hours: fc.integer({ min: 1, max: 8_760_000 }).map((hundredths) => String(hundredths / 100)),
  storage: amount(3, 100_000n),
  traffic: amount(3, 100_000n),
  ipv4: fc.integer({ min: 0, max: 100 }).map(String),
});

/** The same calculation in doubles, unit by unit. */
function inDoubles(of: BilledMachine, { hours, storage, traffic, ipv4 }: Needs) {
  const each = (item: BilledPrice['item'], quantity: number) => {
    const found = of.prices?.find((listed) => listed.item === item && listed.isDefault);
    if (quantity === 0) return 0;
    if (!found) return null;
    const units = found.unit === 'GiB' ? (quantity * 1e9) / 2 ** 30 : quantity;
    const within = (from: number, to: number) => Math.max(0, Math.min(units, to) - from);
    return found.tiers
      .map(
        ({ from, price: perUnit }, i) =>
          Number(perUnit) * within(Number(from), Number(found.tiers[i + 1]?.from ?? Infinity)),
      )
      .reduce((sum, part) => sum + part, 0);
  };
  const scaled = (part: number | null, factor: number) => (part === null ? null : part * factor);
  const [all, cap] = [Number(hours), Number(of.monthlyCap ?? Infinity)];
  const month = Math.min(cap, Number(of.price) * 43_800);
  const months = Math.floor(all / 730);
  return {
    machine: months * month + Math.min(cap, Number(of.price) * 60 * (all - months * 730)),
    storage: scaled(each('block_storage', Number(storage)), all * 60),
    traffic: scaled(each('traffic_out', Math.max(0, Number(traffic) - (of.includedTraffic ?? 0))), all / 730),
    ipv4: scaled(each('ipv4', Math.max(0, Number(ipv4) - (of.includedIpv4 ?? 0))), all * 60),
  };
}

describe('a bill', () => {
  it('has parts that add up exactly, also as JSON numbers', () => {
    fc.assert(
      fc.property(machine, needs, (of, needed) => {
        const bill = billOf(of, needed);
        const parts = BILL_PARTS.map((part) => bill[part]).filter((part) => part !== null);
        expect(parts.reduce((sum, part) => sum.plus(part), new Big(0)).toFixed()).toBe(bill.known);
        expect(bill.total).toBe(bill.isComplete ? bill.known : null);
        const asJson = parts.map((part) => JSON.stringify(Number(part)));
        expect(
          asJson.reduce((sum, part) => sum.plus(part), new Big(0)).eq(JSON.stringify(Number(bill.known))),
        ).toBe(true);
        expect(bill.isComplete).toBe(parts.length === BILL_PARTS.length);
      }),
      { numRuns: runs(300) },
    );
  });

  it('equals a calculation in doubles to nine digits, or to the 8 places of an amount', () => {
    fc.assert(
      fc.property(machine, needs, (of, needed) => {
        const bill = billOf(of, needed);
        const wanted = inDoubles(of, needed);
        for (const part of BILL_PARTS) {
          const [found, other] = [bill[part], wanted[part]];
          expect(found === null).toBe(other === null);
          const error = Math.abs(Number(found) - Number(other));
          const digits = 1e-9 * (Number(bill.known) + Math.abs(Number(other)));
          expect(error).toBeLessThanOrEqual(digits + 0.5e-8);
        }
      }),
      { numRuns: runs(300) },
    );
  });

  it('is capped by the month, and takes included traffic off', () => {
    const prices: BilledPrice[] = [
      { item: 'traffic_out', isDefault: true, unit: 'GB', tiers: [{ from: '0', price: '0.001' }] },
    ];
    const of = { price: '0.0001', monthlyCap: '4', includedTraffic: 1000, includedIpv4: 1, prices };
    const needed = { hours: '1470', storage: '0', traffic: '1500', ipv4: '0' };
    expect(billOf(of, needed)).toEqual({
      machine: '8.06',
      storage: '0',
      traffic: '1.00684932',
      ipv4: '0',
      total: '9.06684932',
      known: '9.06684932',
      isComplete: true,
    });
    expect(billOf({ ...of, prices: null }, { ...needed, ipv4: '2' })).toMatchObject({
      traffic: null,
      ipv4: null,
      total: null,
      known: '8.06',
      isComplete: false,
    });
  });
});
