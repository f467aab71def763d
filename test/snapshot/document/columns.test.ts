import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RegionHead } from '../../../src/snapshot/document/build.ts';
import {
  ColumnsBuilder,
  type MachineWithFacts,
  readColumns,
} from '../../../src/snapshot/document/columns.ts';
import { decodeDocument, encodeDocument } from '../../../src/snapshot/document/format.ts';

const REGION: RegionHead = {
  id: 7,
  name: 'Zürich "1"',
  code: 'zrh',
  version: 12,
  provider: { id: 5, name: 'Größe' },
};
const NAME = { kind: 'columns', regionId: 7 } as const;

const machine: fc.Arbitrary<MachineWithFacts> = fc.record({
  id: fc.integer({ min: 1, max: 2_147_483_647 }),
  name: fc.string({ unit: 'grapheme', maxLength: 12 }),
  cpu: fc.integer({ min: 1, max: 32 }),
  ram: fc.integer({ min: 1, max: 128 }),
  ramUnit: fc.constantFrom('Binary', 'Decimal'),
  price: fc.double({ min: 1e-9, max: 100, noNaN: true }),
  facts: fc.record({
    architecture: fc.constantFrom(null, 'x86_64', 'arm64'),
    generation: fc.option(fc.string({ maxLength: 5 })),
    cpuKind: fc.constantFrom(null, 'dedicated', 'shared'),
    localDisk: fc.option(fc.double({ min: 0, max: 1e5, noNaN: true })),
    network: fc.option(fc.integer({ min: 0, max: 400_000 })),
    includedTraffic: fc.option(fc.double({ min: 0, max: 1e6, noNaN: true })),
    includedIpv4: fc.option(fc.nat(10)),
    orderableUntil: fc.option(fc.constantFrom('2027-03-01T00:00:00Z', '2027-09-30T23:59:59Z')),
    retiresAt: fc.option(fc.constant('2027-09-30T23:59:59Z')),
  }),
  soldOut: fc.constantFrom(false, false, true),
});

function built(machines: readonly MachineWithFacts[]) {
  const builder = new ColumnsBuilder(REGION);
  for (const each of machines) builder.add(each);
  return builder.content({ sources: ['b/7', 'a/7'], currency: 'USD' });
}

function rowsOf(body: Buffer): MachineWithFacts[] {
  const found = readColumns(body) ?? expect.fail('the body cannot be read');
  expect({ region: found.region, provider: found.provider }).toEqual({
    region: { id: 7, name: 'Zürich "1"', code: 'zrh' },
    provider: { id: 5, name: 'Größe' },
  });
  return found.names.map((name, i) => {
    const kind = found.kinds[found.kindOf[i] ?? -1] ?? expect.fail('no kind');
    const { cpu, ram, ramUnit, isSoldOut: soldOut = false, ...facts } = kind;
    return { id: found.ids[i] ?? 0, name, cpu, ram, ramUnit, price: found.prices[i] ?? 0, facts, soldOut };
  });
}

describe('columns', () => {
  it('hold the given values, at any place in memory', () => {
    fc.assert(
      fc.property(
        fc.array(machine, { maxLength: 20 }),
        fc.integer({ min: 0, max: 7 }),
        (machines, offset) => {
          const { body } = built(machines);
          const moved = Buffer.concat([Buffer.alloc(offset), body]).subarray(offset);
          // -0 is written as 0 in JSON.
          const plain = (rows: readonly MachineWithFacts[]) => JSON.parse(JSON.stringify(rows)) as unknown;
          const soldOutLast = [
            ...machines.filter((each) => !each.soldOut),
            ...machines.filter((each) => each.soldOut),
          ];
          expect(plain(rowsOf(moved))).toEqual(plain(soldOutLast));
        },
      ),
    );
  });

  it('are an ordinary document without codings', async () => {
    const content = built(fc.sample(machine, { numRuns: 100, seed: 1 }));
    const document = decodeDocument(NAME, await encodeDocument(content));
    expect(document).toMatchObject({ version: 12, currency: 'USD', sources: ['a/7', 'b/7'] });
    expect(document?.body).toMatchObject({ gzip: undefined, br: undefined });
    expect(document?.body.identity).toEqual(content.body);
  });

  it('name each kind of machine once', () => {
    const facts = {
      architecture: 'arm64',
      generation: null,
      cpuKind: null,
      localDisk: null,
      network: null,
      includedTraffic: null,
      includedIpv4: null,
      orderableUntil: null,
      retiresAt: null,
    } as const;
    const like = (id: number, cpu: number): MachineWithFacts => ({
      id,
      name: `m${id}`,
      cpu,
      ram: 4,
      ramUnit: 'Binary',
      price: id,
      facts,
    });
    const found = readColumns(built([like(1, 2), like(2, 4), like(3, 2)]).body);
    expect([...(found?.kindOf ?? [])]).toEqual([0, 1, 0]);
    expect(found?.kinds).toHaveLength(2);
  });

  it('are not read in another format', () => {
    const { body } = built(fc.sample(machine, { numRuns: 3, seed: 1 }));
    expect(readColumns(body)).toBeDefined();
    body.write('FBC2', 'latin1');
    expect(readColumns(body)).toBeUndefined();
    expect(readColumns(Buffer.alloc(0))).toBeUndefined();
  });
});
