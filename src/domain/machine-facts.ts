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
}

/** All facts, in the order of every display. */
export const FACT_FIELDS = [
  'architecture',
  'generation',
  'cpuKind',
  'localDisk',
  'network',
] as const satisfies readonly (keyof MachineFacts)[];

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
  const value = facts?.[field] ?? null;
  if (value === null) return `${FACT_NAMES[field]} unknown`;
  switch (field) {
    case 'architecture':
      return String(value);
    case 'generation':
      return `generation ${value}`;
    case 'cpuKind':
      return `${value} cpu`;
    case 'localDisk':
      return `${value} GB local disk`;
    case 'network':
      return `${value} Mbit/s`;
  }
}

/** Names in messages. */
export const FACT_NAMES: Readonly<Record<keyof MachineFacts, string>> = {
  architecture: 'architecture',
  generation: 'generation',
  cpuKind: 'kind of cpu',
  localDisk: 'local disk',
  network: 'network',
};
