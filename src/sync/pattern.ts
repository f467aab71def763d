/**
 * Says what kind of change a held batch is: `all 231 prices × 100: a unit?`. An operator reads this sentence first, so it states what
 * was counted, and ends with a question: the cause is known only outside of Fleetbook.
 */
import { PERIOD_MINUTES } from '../domain/prices/price.ts';
import type { ReasonGroup } from '../domain/rejected-rows.ts';
import type { BrokenGuard } from './guards.ts';

/** Factors within this share of their median are one factor: providers round their prices. */
export const SAME_FACTOR = 0.01;
/** A pattern fits at least this share of the rows that it is about, and so many rows. */
const MOST = 0.9;
const FEWEST = 3;
/** A question about at least this share of all changed rows is that of the whole batch. */
const MAIN = 0.8;
const PARTS = 3;
export const NAMED = 3;
const LONGEST_REASON = 100;
const LONGEST_NAME = 40;

/** What a held batch would change, in numbers. Only rows count that a guard counts. */
interface BatchFacts {
  /** The provider, or the source of clusters. */
  readonly owner: string;
  readonly known: number;
  readonly seen: number;
  readonly broken: readonly Pick<BrokenGuard, 'guard'>[];
  /** Why rows cannot be used. */
  readonly rejected: readonly ReasonGroup[];
  readonly gone: GoneRows;
  readonly added: AddedRows;
  /** Absent for clusters. */
  readonly catalogue?: CatalogueFacts;
}

interface CatalogueFacts {
  /** Rows that the upstream announced and sent. */
  readonly totals: readonly { readonly of: string; readonly advertised: number; readonly fetched: number }[];
  /** Why published machines would be excluded. */
  readonly excluded: readonly ReasonGroup[];
  readonly prices: readonly PriceGroup[];
  readonly sizes: ChangedSizes;
  /** Machines that lose a price of a term. */
  readonly termsLost: number;
  readonly plansGone: number;
}

export interface GoneRows {
  readonly rows: number;
  /** Places that lose all of their known rows, by kind. */
  readonly places: readonly Places[];
  readonly twins: readonly Twins[];
  readonly prefix: Prefix;
}

export interface AddedRows {
  readonly rows: number;
  /** Regions without a known row. */
  readonly places: Places;
  readonly prefix: Prefix;
}

export interface Places {
  readonly kind: 'region' | 'organization';
  readonly rows: number;
  readonly count: number;
  /** At most `NAMED`. */
  readonly names: readonly string[];
}

/** The common beginning of all names, and how many known rows have it. */
interface Prefix {
  readonly text: string;
  readonly known: number;
}

/** Rows that go, each with a new row: of the same size in the same region, or of the same name. */
interface Twins {
  readonly alike: 'size' | 'name';
  readonly rows: number;
  /** One pair: names of a size, regions of a name. Null without twins. */
  readonly before: string | null;
  readonly after: string | null;
}

/** Changed prices of one kind with the same periods and currencies. */
export interface PriceGroup extends PriceUnits {
  readonly kind: 'machine' | 'term' | 'region' | 'plan';
  readonly rows: number;
  /** Prices that become zero. */
  readonly zeros: number;
  /** Known prices of machines with the old period and currency; 0 for other kinds. */
  readonly known: number;
  /** The median of the factors, their range, and the number of those that `SAME_FACTOR` allows. Null without a factor. */
  readonly factor: number | null;
  readonly lowest: number | null;
  readonly highest: number | null;
  readonly alike: number;
}

/** Periods are empty for traffic. */
interface PriceUnits {
  readonly oldPer: string;
  readonly per: string;
  readonly oldCurrency: string;
  readonly currency: string;
}

export interface ChangedSizes {
  readonly rows: number;
  /** Medians of the factors, and the number of rows with them. */
  readonly memory: number | null;
  readonly memoryAlike: number;
  readonly cpu: number | null;
  readonly cpuAlike: number;
  /** Rows whose memory is stated in another unit. */
  readonly units: number;
}

interface Part {
  readonly rows: number;
  readonly text: string;
  /** Without its question mark. */
  readonly question: string;
}

/** Returns one sentence: at most three parts, those with the most rows first, and a question. */
export function patternOf(facts: BatchFacts): string {
  const answer = partsOfAnswer(facts);
  const isEmpty = facts.broken.some(({ guard }) => guard === 'empty');
  const changes = isEmpty
    ? []
    : [...partsOfRows(facts), ...(facts.catalogue ? partsOfCatalogue(facts.catalogue, facts.known) : [])]
        .filter(({ rows }) => rows > 0)
        .sort((one, other) => other.rows - one.rows);
  const parts = [...answer, ...changes];
  if (parts.length === 0) return 'no rows with a common change: what did the source change?';
  const texts = parts.slice(0, PARTS).map(({ text }) => text);
  const more = parts.length > PARTS ? '; and more' : '';
  return `${texts.join('; ')}${more}: ${questionOf(answer, changes)}?`;
}

/** An incomplete or unusable answer explains changed rows, so its question comes first. */
function questionOf([answer]: readonly Part[], changes: readonly Part[]): string {
  if (answer) return answer.question;
  const [main] = changes;
  const all = sum(changes, ({ rows }) => rows);
  // One cause changes several kinds of rows, e.g. a unit the prices of machines and of their terms.
  const alike = sum(changes, ({ rows, question }) => (question === main?.question ? rows : 0));
  return main && alike >= MAIN * all ? main.question : 'several changes at once';
}

function partsOfAnswer(facts: BatchFacts): Part[] {
  const { broken, rejected, seen, known, catalogue: { totals = [] } = {} } = facts;
  const breaks = (guard: BrokenGuard['guard']) => broken.some((each) => each.guard === guard);
  const incomplete = totals.filter(({ advertised, fetched }) => advertised !== fetched);
  const sent = breaks('incomplete')
    ? incomplete.map(({ of, advertised, fetched }) => ({
        rows: Math.abs(advertised - fetched),
        text: `${fetched} of ${advertised} announced ${of} sent`,
        question: fetched < advertised ? 'a lost page' : 'a page read twice',
      }))
    : [];
  const repeated = rejected.filter(({ code }) => code === 'duplicate');
  const unusable = rejected.filter(({ code }) => code !== 'duplicate' && code !== 'price_jump');
  const parts = [
    ...sent,
    ...(breaks('duplicates') ? [partOfRepeated(repeated)] : []),
    ...(breaks('rejected') || breaks('empty') ? [partOfUnusable(unusable, seen)] : []),
  ].filter(({ rows }) => rows > 0);
  if (!breaks('empty') || parts.length > 0) return parts;
  const text = `not one row, ${counted(known, nounOf(facts))} known`;
  return [{ rows: Math.max(known, 1), text, question: 'an outage, or credentials that see less' }];
}

function partOfRepeated(repeated: readonly ReasonGroup[]): Part {
  const rows = sumOf(repeated);
  return { rows, text: `${counted(rows, 'rows')} more than once`, question: 'a page read twice' };
}

function partOfUnusable(reasons: readonly ReasonGroup[], seen: number): Part {
  const rows = sumOf(reasons);
  const [first] = reasons;
  const share = first && first.count >= MOST * rows ? 'for one reason' : `${first?.count} for one reason`;
  const why = first ? `, ${share} (${clipped(first.reason, LONGEST_REASON)})` : '';
  // One row represents those beyond the limit of the quarantine.
  const most = reasons.some(({ code }) => code === 'unlisted') ? 'more than ' : '';
  return { rows, text: `${most}${of(rows, seen, 'rows')} unusable${why}`, question: 'a changed format' };
}

function partsOfRows(facts: BatchFacts): Part[] {
  const { known, gone, added } = facts;
  const twins = gone.twins.find(({ rows }) => rows >= FEWEST && rows >= MAIN * gone.rows);
  const isReplaced = !twins && gone.rows === known && gone.rows > 0 && added.rows > 0;
  const left = isReplaced ? 0 : added.rows - (twins?.rows ?? 0);
  return [
    partOfGone(facts, twins, isReplaced),
    // An organization may add many clusters at once, so they are no reason to hold a batch.
    ...(facts.catalogue ? [partOfAdded(added, left, known)] : []),
  ];
}

/** No guard counts sold-out machines. Zero prices and changed sizes are separate parts. */
const NO_REASONS: readonly string[] = [
  ...['sold_out', 'zero_price'],
  ...['fractional_memory', 'over_cpu_limit', 'over_ram_limit', 'over_ram_per_cpu_limit'],
];

function partsOfCatalogue(catalogue: CatalogueFacts, known: number): Part[] {
  const { excluded, prices, sizes, termsLost, plansGone } = catalogue;
  const reasons = excluded.filter(({ code }) => !NO_REASONS.includes(code));
  const question = 'an incomplete answer';
  return [
    partOfExcluded(reasons, known),
    { rows: termsLost, text: `${counted(termsLost, 'machines')} without a price of a term`, question },
    { rows: plansGone, text: `${counted(plansGone, 'database plans')} gone`, question },
    ...partsOfPrices(prices, known),
    partOfSizes(sizes, known),
  ];
}

const nounOf = ({ catalogue }: BatchFacts) => (catalogue ? 'machines' : 'clusters');

function partOfGone(facts: BatchFacts, twins: Twins | undefined, isReplaced: boolean): Part {
  const { known, owner, gone, added } = facts;
  const what = nounOf(facts);
  const { rows, prefix } = gone;
  const place = gone.places.find((each) => each.rows >= FEWEST && each.rows >= MOST * rows);
  if (twins) return partOfTwins(facts, twins, place);
  if (isReplaced) {
    const text = `${of(rows, known, what)} of ${owner} gone, and ${counted(added.rows, 'others')} new`;
    return { rows: rows + added.rows, text, question: 'another account, or another list' };
  }
  if (rows === known) {
    const text = `${of(rows, known, what)} of ${owner} gone`;
    return { rows, text, question: 'an outage, or credentials that see less' };
  }
  if (place) {
    const text = `all ${place.rows} ${what} of ${named(place)} gone${othersOf(rows - place.rows)}`;
    return { rows, text, question: 'an outage' };
  }
  if (isFamily(prefix, rows) && prefix.known === rows)
    return {
      rows,
      text: `all ${rows} machines ${clipped(prefix.text)}… gone`,
      question: 'a family that has ended',
    };
  return { rows, text: `${of(rows, known, what)} gone`, question: 'an incomplete answer' };
}

function partOfTwins(
  { gone: { rows: all, prefix }, catalogue }: BatchFacts,
  { alike, rows, before, after }: Twins,
  place: Places | undefined,
): Part {
  const others = othersOf(all - rows);
  if (alike === 'size') {
    const family = isFamily(prefix, rows) ? ` ${clipped(prefix.text)}…` : '';
    const text = `${rows} machines${family} gone${others}, and ${rows} new with the same sizes in the same regions (${clipped(before)} → ${clipped(after)})`;
    return { rows: rows * 2, text, question: 'one family, same sizes under new names' };
  }
  if (!catalogue) {
    const text = `${rows} clusters gone${others}, and ${rows} new with the same names (${clipped(before)})`;
    return { rows, text, question: 'rebuilt, or new keys' };
  }
  const from = place
    ? `all ${place.rows} machines of ${named(place)} gone${othersOf(all - place.rows)}`
    : `${rows} machines of region ${clipped(before)} gone${others}`;
  const text = `${from}, and ${rows} with the same names in ${clipped(after)}`;
  return { rows: rows * 2, text, question: 'a new code of the region' };
}

/** @param rows without those that replace rows that go */
function partOfAdded({ places, prefix, rows: all }: AddedRows, rows: number, known: number): Part {
  if (known === 0) return { rows, text: `${of(rows, rows, 'machines')} new`, question: 'a first read' };
  if (rows === all && places.rows >= FEWEST && places.rows >= MOST * rows)
    return { rows, text: `${rows} new machines in ${named(places)}`, question: 'a new region' };
  if (rows === all && isFamily(prefix, rows) && prefix.known === 0)
    return { rows, text: `${rows} new machines ${clipped(prefix.text)}…`, question: 'a new family' };
  return { rows, text: `${counted(rows, 'new machines')} beside ${known} known`, question: 'a longer list' };
}

function partOfExcluded(reasons: readonly ReasonGroup[], known: number): Part {
  const rows = sumOf(reasons);
  const [first] = reasons;
  const isOne = first !== undefined && first.count >= MOST * rows;
  const why = isOne ? `as ${first.code}` : `for ${reasons.length} reasons`;
  const question = isOne && first.code === 'no_exchange_rate' ? 'a missing rate' : 'a changed field';
  return { rows, text: `${of(rows, known, 'machines')} excluded ${why}`, question };
}

const isFamily = ({ text }: Prefix, rows: number) => rows >= FEWEST && text.length >= 2;

const NOUNS = {
  machine: 'prices',
  term: 'prices of terms',
  region: 'prices of regions',
  plan: 'prices of database plans',
} as const;

const KINDS = Object.keys(NOUNS) as (keyof typeof NOUNS)[];

function partsOfPrices(prices: readonly PriceGroup[], known: number): Part[] {
  return KINDS.flatMap((kind) => {
    const groups = joined(prices.filter((group) => group.kind === kind));
    const zeros = sum(groups, (group) => group.zeros);
    const text = `${of(zeros, kind === 'machine' ? known : 0, NOUNS[kind])} zero`;
    return [{ rows: zeros, text, question: 'a missing field' }, partOfFactor(kind, groups, known)];
  });
}

/** Joins the groups that keep period and currency, if they have one factor: a mistake in the unit affects all currencies. */
function joined(groups: readonly PriceGroup[]): readonly PriceGroup[] {
  const kept = groups.filter((group) => !isRestated(group));
  const [first] = kept;
  if (first === undefined || !kept.every(({ factor }) => isFactor(factor, first.factor))) return groups;
  return [
    {
      ...first,
      rows: sum(kept, ({ rows }) => rows),
      zeros: sum(kept, ({ zeros }) => zeros),
      known: sum(kept, ({ known }) => known),
      alike: sum(kept, ({ alike }) => alike),
      ...(first.factor !== null && {
        lowest: Math.min(...kept.flatMap(({ lowest }) => lowest ?? [])),
        highest: Math.max(...kept.flatMap(({ highest }) => highest ?? [])),
      }),
    },
    ...groups.filter(isRestated),
  ];
}

const isRestated = ({ oldPer, per, oldCurrency, currency }: PriceUnits) =>
  oldPer !== per || oldCurrency !== currency;

function partOfFactor(kind: PriceGroup['kind'], groups: readonly PriceGroup[], known: number): Part {
  const nouns = NOUNS[kind];
  const rows = sum(groups, (group) => group.rows - group.zeros);
  const [main] = groups.toSorted((one, other) => other.alike - one.alike);
  const factor = main && main.alike >= MOST * (main.rows - main.zeros) ? main.factor : null;
  if (main === undefined || factor === null || (main.alike < FEWEST && groups.length > 1)) {
    const range = rangeOf(groups);
    const text = `${of(rows, kind === 'machine' ? known : 0, nouns)} changed${range}`;
    return { rows, text, question: 'a new price list' };
  }
  const { alike, oldPer, per, oldCurrency, currency } = main;
  // The scope is named if the source states prices in several currencies or periods.
  const scope = kind === 'machine' && main.known < known ? ` in ${oldCurrency}${perText(oldPer)}` : '';
  const whose = `${of(alike, main.known, nouns)}${scope}`;
  const others = othersOf(rows - alike);
  if (!isRestated(main)) {
    const question = alike < FEWEST ? 'a single change' : causeOf(factor);
    return { rows, text: `${whose} × ${Number(factor.toPrecision(3))}${others}`, question };
  }
  const units = [
    ...(oldPer === per ? [] : [`${perText(per).trim()} instead of${perText(oldPer)}`]),
    ...(oldCurrency === currency ? [] : [`in ${currency} instead of ${oldCurrency}`]),
  ].join(' and ');
  const amounts = isFactor(factor, 1) ? 'the same amounts' : `amounts × ${Number(factor.toPrecision(3))}`;
  return { rows, text: `${whose} ${units}, ${amounts}${others}`, question: causeOfRestated(main, factor) };
}

const perText = (per: string) => (per === '' ? '' : ` per ${per}`);

function rangeOf(groups: readonly PriceGroup[]): string {
  const [low, high] = [
    groups.flatMap(({ lowest }) => lowest ?? []),
    groups.flatMap(({ highest }) => highest ?? []),
  ];
  if (low.length === 0 || groups.some(isRestated)) return '';
  const text = (factor: number) => `× ${Number(factor.toPrecision(3))}`;
  return `, ${text(Math.min(...low))} to ${text(Math.max(...high))}`;
}

const UNIT_FACTORS = [10, 100, 1000, 1024, 10_000, 1_000_000];
const { minute, hour, month } = PERIOD_MINUTES;
const PERIOD_FACTORS = [hour / minute, month / hour, month / minute, 720, 744, 24, 12, 12 * (month / hour)];
/** Half of the smallest and the largest rate of a sales tax in use, roughly; a rise of this size may be one too. */
const TAX = [1.03, 1.3] as const;
/** A provider rarely changes all prices by more. */
const PRICE_RISE = 3;

function causeOf(factor: number): string {
  const size = factor < 1 ? 1 / factor : factor;
  if (PERIOD_FACTORS.some((each) => isFactor(size, each))) return 'a period';
  if (UNIT_FACTORS.some((each) => isFactor(size, each))) return 'a unit';
  if (size >= TAX[0] && size <= TAX[1])
    return factor < 1 ? 'a price cut, or no tax any more' : 'a price rise, or tax';
  if (size <= PRICE_RISE) return factor < 1 ? 'a price cut' : 'a price rise';
  return 'a unit or a currency';
}

function causeOfRestated({ oldPer, per, oldCurrency, currency }: PriceUnits, factor: number): string {
  if (oldCurrency !== currency)
    return isFactor(factor, 1) ? 'only the name of the currency' : 'another currency';
  const minutes = (period: string) => PERIOD_MINUTES[period as keyof typeof PERIOD_MINUTES] ?? 1;
  const expected = minutes(per) / minutes(oldPer);
  // Providers count a month as 720 to 744 hours.
  return Math.abs(factor / expected - 1) <= 0.03 ? 'the same prices, stated otherwise' : 'a wrong period';
}

function partOfSizes(sizes: ChangedSizes, known: number): Part {
  const { rows, memory, memoryAlike, cpu, cpuAlike, units } = sizes;
  const isCommon = (factor: number | null, alike: number): factor is number =>
    factor !== null && !isFactor(factor, 1) && alike >= FEWEST && alike >= MOST * rows;
  const factor = (value: number) => Number(value.toPrecision(4));
  const common = [
    ...(isCommon(memory, memoryAlike)
      ? [`memory of ${of(memoryAlike, known, 'machines')} × ${factor(memory)}`]
      : []),
    ...(isCommon(cpu, cpuAlike) ? [`CPUs of ${of(cpuAlike, known, 'machines')} × ${factor(cpu)}`] : []),
  ];
  if (common.length > 0) return { rows, text: common.join(', '), question: 'a unit' };
  if (units >= FEWEST && units >= MOST * rows)
    return {
      rows,
      text: `memory of ${of(units, known, 'machines')} in another unit`,
      question: 'GB for GiB',
    };
  return { rows, text: `${of(rows, known, 'machines')} with another size`, question: 'a changed field' };
}

function isFactor(value: number | null, expected: number | null): boolean {
  if (value === null || expected === null) return value === expected;
  return Math.abs(value / expected - 1) <= SAME_FACTOR;
}

/** `all 231 prices`, `225 of 231 prices`, `the only price`; without a known number `225 prices`. @param nouns plural */
function of(rows: number, all: number, nouns: string): string {
  if (all === 0) return counted(rows, nouns);
  if (rows !== all) return `${rows} of ${all} ${nouns}`;
  return all === 1 ? `the only ${singular(nouns)}` : `all ${all} ${nouns}`;
}

const named = ({ kind, count, names }: Places): string =>
  count === 1
    ? `${kind} ${clipped(names[0])}`
    : `${count} ${kind}s (${names.map((name) => clipped(name)).join(', ')}${count > names.length ? ', …' : ''})`;

const counted = (rows: number, nouns: string): string => `${rows} ${rows === 1 ? singular(nouns) : nouns}`;

/** The first word that ends with an s is the noun: `prices of terms`, `new machines`. */
const singular = (nouns: string): string => nouns.replace(/s\b/, '');

const othersOf = (rows: number): string => (rows > 0 ? `, and ${counted(rows, 'others')}` : '');

const sum = <Row>(rows: readonly Row[], of: (row: Row) => number): number =>
  rows.reduce((all, row) => all + of(row), 0);

const sumOf = (reasons: readonly ReasonGroup[]): number => sum(reasons, ({ count }) => count);

const clipped = (text: string | null | undefined, longest = LONGEST_NAME): string =>
  text && text.length > longest ? `${text.slice(0, longest - 1)}…` : (text ?? '');
