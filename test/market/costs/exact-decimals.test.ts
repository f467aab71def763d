/** Every amount of an answer is the exact decimal result of what providers state, and has no more digits. */
import Big from 'big.js';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { pricePerMinute } from '../../../src/domain/prices/price.ts';
import { storedTerm } from '../../../src/domain/prices/term.ts';
import {
  alternativesDocument,
  costDocument,
  costsDocument,
  shownCost,
} from '../../../src/features/costs/documents.ts';
import { listPrices } from '../../../src/features/costs/list-prices.ts';
import { databaseAnswers } from '../../../src/features/databases/answers.ts';
import { searchAnswers } from '../../../src/features/search/answers.ts';
import { emptyIndex, updateIndex } from '../../../src/market/catalogue-index.ts';
import { shownMonth } from '../../../src/market/costs/cost.ts';
import type { StoredCluster } from '../../../src/market/costs/inputs.ts';
import {
  clusterSummer,
  type OrganizationInputs,
  organizationCosts,
  pricedMachine,
} from '../../../src/market/costs/organization.ts';
import { bookFor, NOW } from '../../../src/market/costs/prices.ts';
import { candidatesOfIndex, comparedMachine } from '../../../src/market/costs/savings.ts';
import { ownView, PriceBooks } from '../../../src/market/price-books.ts';
import type { Answer, MaybePromise } from '../../../src/snapshot/document/answer.ts';
import { priceBookContent } from '../../../src/snapshot/document/build.ts';
import { encoding } from '../../../src/snapshot/document/format.ts';
import type { Documents } from '../../../src/snapshot/read/documents.ts';
import { runs } from '../../support/random.ts';
import { priceBookEntry } from '../price-book-entry.ts';
import { storedMachine } from '../stored-machine.ts';
import * as worlds from '../world.ts';

const Wide = Big();
Wide.DP = 60;
Wide.RM = Wide.roundHalfEven;

/** A plain decimal with this many places. */
const decimal = (places: number, most: number) =>
  fc.integer({ min: 1, max: most }).map((units) => new Wide(units).times(`1e-${places}`).toFixed());
const machine = fc.record({
  hourly: decimal(4, 30_000),
  cap: fc.option(decimal(2, 200_000), { nil: undefined }),
  upfront: decimal(2, 300_000),
  recurring: decimal(4, 10_000),
  disk: fc.option(decimal(3, 2_000_000).map(Number)),
});
const given = fc.record({
  machines: fc.tuple(machine, machine, machine),
  discount: fc.option(decimal(2, 9_999), { nil: undefined }),
  nodes: fc.integer({ min: 1, max: 30 }),
  plan: decimal(4, 30_000),
});
type Given = typeof given extends fc.Arbitrary<infer T> ? T : never;

const ORGANIZATION = 1;
const AT = Date.parse('2026-06-01T00:00:00Z');
const idOf = (i: number) => 100 + i;

function read({ machines, discount, nodes, plan }: Given) {
  const perMinute = (amount: string) =>
    pricePerMinute({ amount, per: 'hour', currency: 'USD' }, 'USD', {}) ?? expect.unreachable();
  const rows = machines.map(({ hourly, cap, upfront, recurring, disk }, i): worlds.Machine => {
    const source = { price: { amount: recurring, per: 'hour', currency: 'USD' }, upfront } as const;
    const reserved = storedTerm('reserved_1y', source, 'USD', {}) ?? expect.unreachable();
    const monthly_cap =
      cap === undefined ? {} : { monthly_cap: { price: cap, source: { amount: cap, currency: 'USD' } } };
    const facts = {
      architecture: null,
      generation: null,
      cpuKind: null,
      localDisk: disk,
      network: null,
      includedTraffic: null,
      includedIpv4: null,
      orderableUntil: null,
      retiresAt: null,
    };
    const terms = { terms: { reserved_1y: reserved }, ...monthly_cap };
    return {
      id: idOf(i),
      name: `m${i}`,
      cpu: 2,
      ram: 4,
      ramUnit: 'Binary',
      price: Number(perMinute(hourly)),
      facts,
      terms,
      provider: 1,
      region: 1,
    };
  });
  const plans = [
    {
      id: 1,
      engine: 'e',
      name: 'p',
      nodes: 1,
      cpu: null,
      ram: null,
      ramUnit: null,
      storage: null,
      price: perMinute(plan),
    },
  ];
  const update = { ...worlds.updateOf(1, rows) };
  const index = worlds.atOnce(
    updateIndex(emptyIndex(), [{ ...update, columns: { ...update.columns, databases: plans } }]),
  );
  const entries = discount === undefined ? [] : [priceBookEntry({ id: 1, discount })];
  const cluster: StoredCluster = {
    ...{ id: 1, name: 'c', slug: 'c', status: 'Active', shards: nodes, replicas: 1, disks: [] },
    region: { id: 1, name: 'R', code: 'r' },
    provider: { id: 1, name: 'P' },
    ...{ machineId: idOf(0), sourceId: 's', createdAt: '2026-01-01T00:00:00.000000Z', creation: null },
  };
  const inputs: OrganizationInputs = {
    clusters: [clusterSummer()(cluster)],
    arePublished: true,
    machines: new Map(
      rows.map(({ id, name, cpu, ram, ramUnit, facts, terms }, i) => [
        id,
        storedMachine({
          ...facts,
          ...{ id, name, cpu, ram, ramUnit, bytes: ram * 2 ** 30 },
          price: perMinute(machines[i]?.hourly ?? ''),
          monthlyCap: terms?.monthly_cap?.price ?? null,
        }),
      ]),
    ),
    entries,
    time: NOW,
    marked: { sources: [], regions: [] },
    marks: { lineage: 'l', organization: '1', regions: '', currency: 'USD', asOf: null },
    readAt: 0,
  };
  const book = bookFor(entries, NOW, AT);
  const priced = pricedMachine(idOf(0), inputs, book);
  const alternatives = () => {
    const than = comparedMachine(priced) ?? expect.unreachable();
    const { term } = NOW;
    const view = entries.length === 0 ? index : worlds.atOnce(ownView(undefined, index, book));
    const ofIndex = candidatesOfIndex({ view, list: index }, than, { term, book, match: 'kind', most: 11 });
    const wanted = { match: 'kind', limit: 10, least: 0n } as const;
    return alternativesDocument({ cluster, machine: priced }, NOW, wanted, {
      ...ofIndex,
      sameRegion: ofIndex.anywhere,
    });
  };
  const bookDocument = encoding(priceBookContent(ORGANIZATION, 1, entries, 'USD')).document;
  const documents = {
    get: () => ({ document: bookDocument, tier: 'memory', asOf: undefined }),
    postgres: () => expect.unreachable(),
  } as unknown as Pick<Documents, 'get' | 'postgres'>;
  const catalogue = { get: () => ({ index, tier: 'memory' as const, asOf: () => undefined }) };
  const json = async (answer: MaybePromise<Answer | undefined>) =>
    JSON.parse((await answer)?.body.identity.toString() ?? 'null');
  const search = searchAnswers({ catalogue, books: new PriceBooks({ documents }) });
  return {
    cost: () => costDocument(cluster, priced, NOW),
    costs: async () => {
      const document = costsDocument(await organizationCosts(inputs, NOW, AT), NOW, 10);
      return { ...document, clusters: document.clusters.map(shownCost) };
    },
    alternatives,
    recommended: () =>
      json(
        search.recommend({
          ...{ filters: {}, ramUnit: 'AsSold', term: 'on_demand', organizationId: ORGANIZATION },
          needs: { hours: '730', storage: '0', traffic: '0', ipv4: '0' },
        }),
      ),
    terms: (i: number) =>
      json(listPrices({ documents, catalogue }).terms(idOf(i), false, ORGANIZATION, true)),
    plan: () => json(databaseAnswers({ documents, catalogue }).one(1, false, ORGANIZATION)),
    console: async () => (await organizationCosts(inputs, NOW, AT)).costs[0],
  };
}

/** The exact results, from what the provider states. */
function exactly({ machines, discount, nodes, plan }: Given) {
  const left = new Wide(100).minus(discount ?? 0).div(100);
  const monthOf = ({ hourly, cap }: Given['machines'][number]) => {
    const full = new Wide(hourly).times(730);
    return (cap !== undefined && full.gt(cap) ? new Wide(cap) : full).times(left);
  };
  const [own] = machines;
  return {
    minutes: machines.map(({ hourly }) => new Wide(hourly).times(left).div(60)),
    recurring: machines.map(({ recurring }) => new Wide(recurring).times(left).div(60)),
    months: machines.map(monthOf),
    cluster: monthOf(own).times(nodes),
    savings: machines.map((other) => monthOf(own).minus(monthOf(other)).times(nodes)),
    disks: machines.map(({ disk }) =>
      disk === null || own.disk === null ? null : new Wide(disk).minus(own.disk).toFixed(),
    ),
    plan: new Wide(plan).times(730),
  };
}

const text = (value: number | null) => (value === null ? null : new Wide(value).toFixed());

it('amounts are exact, and one month is one number in every answer', async () => {
  await fc.assert(
    fc.asyncProperty(given, async (of) => {
      const answers = read(of);
      const exact = exactly(of);
      const [cost, costs, alternatives, recommended, plan] = await Promise.all([
        answers.cost(),
        answers.costs(),
        answers.alternatives(),
        answers.recommended(),
        answers.plan(),
      ]);
      for (const month of [
        cost.per_month,
        cost.machine.per_month,
        costs.total.per_month,
        alternatives.machine.per_month,
      ])
        expect(text(month)).toBe(exact.cluster.toFixed());
      expect(text(shownMonth((await answers.console())?.known.perMonth ?? -1n))).toBe(
        exact.cluster.toFixed(),
      );
      for (const { machine, per_month, saving_per_month, compared } of alternatives.anywhere) {
        const i = machine.id - idOf(0);
        expect([text(per_month), text(saving_per_month), text(compared.local_disk_difference)]).toEqual([
          exact.months[i]?.times(of.nodes).toFixed(),
          exact.savings[i]?.toFixed(),
          exact.disks[i],
        ]);
      }
      const [best] = recommended.recommendations;
      const lowest = exact.months.reduce((a, b) => (a.lte(b) ? a : b));
      expect([text(best.total), text(best.breakdown.machine)]).toEqual([lowest.toFixed(), lowest.toFixed()]);
      expect(text(plan.price_per_month)).toBe(exact.plan.toFixed());
      for (const i of of.machines.keys()) {
        const { terms } = await answers.terms(i);
        const [onDemand, reserved] = terms;
        expectExact(onDemand.price, exact.minutes[i]);
        expectExact(reserved.recurring_price, exact.recurring[i]);
      }
    }),
    { numRuns: runs(300) },
  );
});

/** An exact result with at most 12 places is stated as it is. Otherwise the number is the nearest one, with at most 18 places. */
function expectExact(found: number, wanted: Big | undefined): void {
  if (!wanted) throw new Error('unreachable: each machine has a result');
  const places = (value: Big) => value.toFixed().split('.')[1]?.length ?? 0;
  if (places(wanted) <= 12) expect(text(found)).toBe(wanted.toFixed());
  else {
    expect(places(new Wide(found))).toBeLessThanOrEqual(18);
    expect(new Wide(found).minus(wanted).abs().lt('1e-14')).toBe(true);
  }
}
