/** What a source says of a machine besides its size and price. Null is unknown: nothing is guessed. */

export const CPU_KINDS = ['dedicated', 'shared'] as const;

export interface MachineFacts {
  /** `x86_64`, `arm64`, or another architecture in lower case. */
  readonly architecture: string | null;
  /** As the provider states it, e.g. the processor or the number of the series. */
  readonly generation: string | null;
  /** Whether its cpu is its own, or shared with other machines of the same host. */
  readonly cpuKind: (typeof CPU_KINDS)[number] | null;
  /** GB (10^9 bytes) of disk that the price includes and that lies on the host; 0 for none. */
  readonly localDisk: number | null;
  /** Mbit/s (10^6 bits) that it may send. */
  readonly network: number | null;
}

/** In the order in which they are shown. */
export const FACT_FIELDS = [
  'architecture',
  'generation',
  'cpuKind',
  'localDisk',
  'network',
] as const satisfies readonly (keyof MachineFacts)[];

type Known = Readonly<Partial<MachineFacts>> | null;

/** Those facts that are other ones than in `other`, e.g. `arm64, network unknown`; empty where none is. */
export function differingFacts(facts: Known, other: Known): string {
  return FACT_FIELDS.filter((field) => (facts?.[field] ?? null) !== (other?.[field] ?? null))
    .map((field) => factInWords(field, facts))
    .join(', ');
}

/** The facts that differ, e.g. `arm64, network unknown → x86_64, 1000 Mbit/s`; empty where none does. */
export function factsChange(before: Known, after: Known): string {
  const now = differingFacts(after, before);
  return now === '' ? '' : `${differingFacts(before, after)} → ${now}`;
}

/** `generation 3`, or `network unknown`. */
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

/** What each is called in messages. */
export const FACT_NAMES: Readonly<Record<keyof MachineFacts, string>> = {
  architecture: 'architecture',
  generation: 'generation',
  cpuKind: 'kind of cpu',
  localDisk: 'local disk',
  network: 'network',
};
