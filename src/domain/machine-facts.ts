/** Facts of a machine besides its size and price. Null means unknown; Fleetbook never guesses a fact. */

export const CPU_KINDS = ['dedicated', 'shared'] as const;

export interface MachineFacts {
  /** `x86_64`, `arm64`, or another architecture in lower case. */
  readonly architecture: string | null;
  /** The provider's own text, e.g. the processor or the number of the series. */
  readonly generation: string | null;
  /** `shared`: other machines of the same host use the same cpu. */
  readonly cpuKind: (typeof CPU_KINDS)[number] | null;
  /** GB (10^9 bytes) of disk on the host that the price includes; 0 for none. */
  readonly localDisk: number | null;
  /** Outgoing bandwidth, Mbit/s (10^6 bits). */
  readonly network: number | null;
  /** GB (10^9 bytes) of outgoing traffic that the price of a month includes; 0 for none. */
  readonly includedTraffic: number | null;
  /** Public IPv4 addresses that the price includes; 0 for none. */
  readonly includedIpv4: number | null;
  /** From this time on the machine cannot be ordered: RFC 3339 in UTC, to the second. Null: its provider has announced no end. */
  readonly orderableUntil: string | null;
  /** Its provider ends the service at this time, in the same form. */
  readonly retiresAt: string | null;
}

interface Fact {
  /** Its column in the database, and its field in the API. */
  readonly column: string;
  readonly type: 'text' | 'number' | 'time';
  readonly values?: readonly string[];
  readonly name: string;
  /** A known fact as text; % is its value. */
  readonly inWords: string;
  readonly describe: string;
  readonly example: string | number | null;
}

/** All facts, in the order of every display. Add a new one at the end: stored bodies have them in this order. */
export const MACHINE_FACTS = {
  architecture: {
    column: 'architecture',
    type: 'text',
    name: 'architecture',
    inWords: '%',
    describe: '`x86_64`, `arm64` or another architecture in lower case; null: unknown',
    example: 'arm64',
  },
  generation: {
    column: 'generation',
    type: 'text',
    name: 'generation',
    inWords: 'generation %',
    describe: 'As the provider states it; null: unknown',
    example: null,
  },
  cpuKind: {
    column: 'cpu_kind',
    type: 'text',
    values: CPU_KINDS,
    name: 'kind of cpu',
    inWords: '% cpu',
    describe: 'Dedicated or shared CPU; null: unknown',
    example: 'shared',
  },
  localDisk: {
    column: 'local_disk',
    type: 'number',
    name: 'local disk',
    inWords: '% GB local disk',
    describe: 'GB of local disk; 0 for none, null: unknown',
    example: 40,
  },
  network: {
    column: 'network',
    type: 'number',
    name: 'network',
    inWords: '% Mbit/s',
    describe: 'Mbit/s; null: unknown',
    example: null,
  },
  includedTraffic: {
    column: 'included_traffic',
    type: 'number',
    name: 'included traffic',
    inWords: '% GB traffic a month included',
    describe: 'GB of outgoing traffic a month that the price includes; 0 for none, null: unknown',
    example: 20_000,
  },
  includedIpv4: {
    column: 'included_ipv4',
    type: 'number',
    name: 'included IPv4 addresses',
    inWords: '% IPv4 included',
    describe: 'Public IPv4 addresses that the price includes; 0 for none, null: unknown',
    example: 1,
  },
  orderableUntil: {
    column: 'orderable_until',
    type: 'time',
    name: 'end of sale',
    inWords: 'orderable until %',
    describe: 'RFC 3339. From then on the machine cannot be ordered; null: no end is announced',
    example: null,
  },
  retiresAt: {
    column: 'retires_at',
    type: 'time',
    name: 'retirement',
    inWords: 'retires on %',
    describe: 'RFC 3339. The provider ends the service then; null: no end is announced',
    example: null,
  },
} as const satisfies Readonly<Record<keyof MachineFacts, Fact>>;

export const FACT_FIELDS = Object.keys(MACHINE_FACTS) as (keyof MachineFacts)[];

export type FactsDocument = {
  -readonly [Field in keyof MachineFacts as (typeof MACHINE_FACTS)[Field]['column']]: MachineFacts[Field];
};

/** Returns an object with one property for each fact, by the name in the API. */
export function byColumn<T>(of: (field: keyof MachineFacts) => T): Record<keyof FactsDocument, T> {
  return Object.fromEntries(FACT_FIELDS.map((field) => [MACHINE_FACTS[field].column, of(field)])) as Record<
    keyof FactsDocument,
    T
  >;
}

type Known = Readonly<Partial<MachineFacts>> | null;

/** Returns the facts that differ from `other`, e.g. `arm64, network unknown`; empty if all are equal. */
export function differingFacts(facts: Known, other: Known): string {
  return FACT_FIELDS.filter((field) => (facts?.[field] ?? null) !== (other?.[field] ?? null))
    .map((field) => factInWords(field, facts))
    .join(', ');
}

/** Returns the change of facts, e.g. `arm64, network unknown → x86_64, 1000 Mbit/s`; empty if all are equal. */
export function factsChange(before: Known, after: Known): string {
  const now = differingFacts(after, before);
  return now === '' ? '' : `${differingFacts(before, after)} → ${now}`;
}

/** Returns one fact as text: `generation 3`, or `network unknown`. */
export function factInWords(field: keyof MachineFacts, facts: Known): string {
  const { name, inWords, type } = MACHINE_FACTS[field];
  const value = facts?.[field] ?? null;
  if (value === null) return `${name} unknown`;
  const text = String(value);
  return inWords.replace('%', () => (type === 'time' ? timeInWords(text) : text));
}

/** Returns the announced ends as text, e.g. `orderable until 2027-03-01, retires on 2027-09-30`; empty if there is none. */
export function endsInWords(ends: Pick<MachineFacts, 'orderableUntil' | 'retiresAt'>): string {
  return (['orderableUntil', 'retiresAt'] as const)
    .filter((field) => ends[field] !== null)
    .map((field) => factInWords(field, ends))
    .join(', ');
}

/** Returns a time of a fact: `2027-03-01` at midnight, else `2027-03-01 08:00 UTC`. */
export function timeInWords(time: string): string {
  const [day = '', clock = ''] = time.split('T');
  return clock === '00:00:00Z' ? day : `${day} ${clock.slice(0, 5)} UTC`;
}
