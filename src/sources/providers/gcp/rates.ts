/** Google's rates of cores and memory, on demand and for other terms. */
import Big from 'big.js';
import { isPositive, quotient } from '../../../domain/prices/price.ts';
import type { OfferedTerms, Term } from '../../../domain/prices/term.ts';
import type { LeftOut } from '../../schema/left-out.ts';
import { type Row, rowOf, unusable, valueIn } from '../../schema/rows.ts';
import { agreed, type FoundSku, MEMORY, paidAmount, pricedBy, stepsInForce } from './sku.ts';

type Component = 'core' | 'ram' | 'machine' | 'disk';
const PRICED = {
  core: pricedBy('h'),
  ram: MEMORY,
  machine: pricedBy('h'),
  /** Local disks that are part of a type. */
  disk: pricedBy('GiBy.mo'),
};

/** Parts of predefined machines. Other offers (custom machines, sole tenancy, reservations) have other descriptions. */
const OF_FAMILY =
  /^([A-Z]\d+[A-Z]?(?:-[A-Z]+)*)(?: AMD| Arm| Predefined| Memory-optimized)? Instance (Core|Ram)(?: running)?(?: in .+)?$/i;
const OF_OLD_FAMILY =
  /^(Compute optimized|Memory-optimized)(?: Instance)? (Core|Ram)(?: running)?(?: in .+)?$/i;
const OLD_FAMILIES: Readonly<Record<string, string>> = {
  'compute optimized': 'c2',
  'memory-optimized': 'm1',
};
/** Machines with one price for the whole. */
const OF_MACHINE: readonly (readonly [RegExp, string])[] = [
  [/^Micro Instance with burstable CPU(?: running)?(?: in .+)?$/i, 'f1-micro'],
  [/^Small Instance with 1 VCPU(?: running)?(?: in .+)?$/i, 'g1-small'],
];
const OF_DISK = /^([A-Z]\d+[A-Z]?(?:-[A-Z]+)*) Instance Local SSD(?: running)?(?: in .+)?$/i;
/** The price of local disks for series that state none. */
const OF_ANY_DISK = /^SSD backed Local Storage(?: running)?(?: in .+)?$/i;
const ANY_SERIES = 'any series';
/** Google's documents do not say which of the two prices is that of this series. They differ in some regions. */
const WITH_TWO_PRICES: ReadonlySet<string> = new Set(['z3']);
const HOURS_PER_MONTH = '730';

const SPOT = /^(?:Spot )?Preemptible /i;
/** Commitments for resources. Those of N1 name no family, and those for amounts of money (`dollar based`) have no rate of a core. */
const OF_COMMITMENT =
  /^Commitment v1: (?:([A-Z]\d+[A-Z]?)(?: AMD| Arm| Memory-optimized)? )?(Cpu|Ram) in .+ for ([13]) Years?$/i;
const OF_OLD_COMMITMENT =
  /^Commitment(?: v1)?: (Compute optimized|Memory-optimized)(?: Instance)? (Core|Cpu|Ram)(?: running)? in .+ for ([13]) Years?$/i;

const TERMS = { Preemptible: 'spot', Commit1Yr: 'reserved_1y', Commit3Yr: 'reserved_3y' } as const;
const USAGES: Readonly<Record<string, Contract>> = { OnDemand: 'on_demand', ...TERMS };
type Contract = 'on_demand' | Term;

/** Cores that Google charges for a shared-core machine. Source: https://cloud.google.com/compute/vm-instance-pricing. */
const BILLED_CORES: Readonly<Record<string, string>> = {
  'e2-micro': '0.25',
  'e2-small': '0.5',
  'e2-medium': '1',
};
/** Types with other rates than their family. */
const OWN_RATES = /^(a3-(mega|ultra|edge)gpu|m2-|m4n?-ultramem-224$|n1-(mega|ultra)mem|x4-)/;

const GIB_IN_MIB = '0.0009765625';

interface BilledType {
  readonly name: string;
  readonly guestCpus: number;
  readonly memoryMb: number;
  /** GiB of local disks in its price. */
  readonly disks: number;
}

export class Rates {
  readonly #rates = new Map<string, Row<string>>();
  readonly #families = new Set<string>();
  readonly #leftOut: LeftOut;

  constructor(leftOut: LeftOut) {
    this.#leftOut = leftOut;
  }

  add(sku: FoundSku): void {
    const { description, usage, serviceRegions } = sku;
    const contract = USAGES[usage];
    const of = contract === undefined ? undefined : componentOf(description, contract);
    if (contract === undefined || of === undefined) return;
    if (contract === 'on_demand' && of.component !== 'disk') this.#families.add(of.family);
    const rate = rowOf(() => paidAmount(stepsInForce(PRICED[of.component], sku)));
    for (const regionCode of serviceRegions) {
      const key = keyOf(contract, of.family, of.component, regionCode);
      this.#rates.set(key, agreed(this.#rates.get(key) ?? rate, rate));
    }
  }

  /** Returns exact dollars per hour. Zero if one part is zero, so that half a price is never published. */
  hourly(
    { name, guestCpus, memoryMb, disks }: BilledType,
    regionCode: string,
    contract: Contract = 'on_demand',
  ): string {
    const rateOf = (component: Component, family: string) =>
      this.#rates.get(keyOf(contract, family, component, regionCode));
    const whole = rateOf('machine', name);
    if (whole !== undefined) return valueIn(whole);
    const ofFamily = (component: Component) =>
      familiesOf(name)
        .map((family) => rateOf(component, family))
        .find((rate) => rate !== undefined);
    const scope = contract === 'on_demand' ? `of ${name} in ${regionCode}` : `for ${contract}`;
    const partOf = (component: Component) =>
      valueIn(ofFamily(component) ?? { reason: `no SKU prices the ${component} ${scope}` });
    const [core, ram] = [partOf('core'), partOf('ram')];
    if (!isPositive(core) || !isPositive(ram)) return '0';
    const cores = new Big(core).times(BILLED_CORES[name] ?? guestCpus);
    // A product is exact; `div` would round at twenty decimal places.
    const machine = cores.plus(new Big(ram).times(memoryMb).times(GIB_IN_MIB));
    if (disks === 0) return machine.toFixed();
    const [own, any] = [ofFamily('disk'), rateOf('disk', ANY_SERIES)];
    const isClear = own === undefined || any === undefined || !WITH_TWO_PRICES.has(seriesOf(name));
    const disk = valueIn(
      (isClear ? (own ?? any) : agreed(own, any)) ?? { reason: `no SKU prices the local disks ${scope}` },
    );
    if (!isPositive(disk)) return '0';
    return machine.plus(quotient(new Big(disk).times(disks).toFixed(), HOURS_PER_MONTH)).toFixed();
  }

  /** Returns the other terms whose parts have a price in the region. */
  terms(type: BilledType, regionCode: string): OfferedTerms {
    const terms: { [T in Term]?: OfferedTerms[T] } = {};
    const families = familiesOf(type.name);
    // Commitments cover the share of a core of E2, but not f1-micro and g1-small: https://cloud.google.com/compute/vm-instance-pricing.
    const has = (term: Term, of: string, component: Component) =>
      this.#rates.has(keyOf(term, of, component, regionCode));
    for (const term of Object.values(TERMS)) {
      const isOffered =
        has(term, type.name, 'machine') ||
        families.some((family) => has(term, family, 'core') || has(term, family, 'ram'));
      // Without its disks a machine has no price of the term.
      const hasDisks = type.disks === 0 || families.some((family) => has(term, family, 'disk'));
      if (!isOffered || !hasDisks) continue;
      const kind = term === 'spot' ? 'spot prices' : 'commitment prices';
      const amount = this.#leftOut.read(kind, `${type.name}@${regionCode}`, () => {
        const found = this.hourly(type, regionCode, term);
        return isPositive(found) ? found : unusable('a part of it costs nothing');
      });
      if (amount !== undefined) terms[term] = { price: { amount, per: 'hour', currency: 'USD' } };
    }
    return terms;
  }

  /** Returns why a type has no price in any region; undefined if it may have one. */
  unpriced(name: string, isShared: boolean): string | undefined {
    if (this.#families.has(name)) return undefined;
    if (OWN_RATES.test(name)) return 'has other rates than its family, which Fleetbook does not read';
    if (isShared && BILLED_CORES[name] === undefined)
      return 'is shared-core, and the share of a core in its price is not known';
    if (familiesOf(name).some((family) => this.#families.has(family))) return undefined;
    return `no SKU prices the cores and the memory of the family ${seriesOf(name)}`;
  }
}

function componentOf(
  description: string,
  contract: Contract,
): { family: string; component: Component } | undefined {
  if (contract === 'reserved_1y' || contract === 'reserved_3y') {
    const found = OF_COMMITMENT.exec(description) ?? OF_OLD_COMMITMENT.exec(description);
    // The usage type and the description must state the same term.
    return found === null || `reserved_${found[3]}y` !== contract
      ? undefined
      : partOf(found[1] ?? 'N1', found[2]);
  }
  if (contract === 'spot' && !SPOT.test(description)) return undefined;
  const text = contract === 'spot' ? description.replace(SPOT, '') : description;
  const machine = OF_MACHINE.find(([pattern]) => pattern.test(text))?.[1];
  if (machine !== undefined) return { family: machine, component: 'machine' };
  if (OF_ANY_DISK.test(text)) return { family: ANY_SERIES, component: 'disk' };
  const disk = OF_DISK.exec(text)?.[1];
  if (disk !== undefined) return { family: disk.toLowerCase(), component: 'disk' };
  const found = OF_FAMILY.exec(text) ?? OF_OLD_FAMILY.exec(text);
  return found?.[1] === undefined ? undefined : partOf(found[1], found[2]);
}

function partOf(named: string, part = ''): { family: string; component: Component } {
  const family = named.toLowerCase();
  const component = part.toLowerCase() === 'ram' ? 'ram' : 'core';
  return { family: OLD_FAMILIES[family] ?? family, component };
}

function keyOf(contract: Contract, family: string, component: Component, regionCode: string): string {
  return JSON.stringify([contract, family, component, regionCode]);
}

function seriesOf(name: string): string {
  return name.split('-')[0] ?? name;
}

/** The names under which SKUs price a type: `z4d-highmem-8-highlssd` is of z4d-highmem-highlssd, other types of their series. */
function familiesOf(name: string): readonly string[] {
  const shape = name.split('-').filter((part) => !/^\d+$/.test(part));
  return [shape.join('-'), seriesOf(name)];
}
