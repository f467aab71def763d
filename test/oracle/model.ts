/**
 * The right answers of the four operations, byte for byte, from the states of upstreams, tokens and organizations. It uses
 * no code of the product: documents follow the HTTP contract.
 */
import { Feed } from './feed.ts';

export interface MachineRow {
  /** Hundred-thousandths of a USD per minute. */
  readonly price: number;
  /** True if it can be ordered. */
  readonly isListed: boolean;
}

export interface ClusterRow {
  readonly name: string;
  readonly status: string;
  readonly shards: number;
}

export interface Organization {
  readonly slug: string;
  readonly id: number;
  /** Milliseconds of `performance.now()` at which its deletion began. */
  deleteBegun: number | undefined;
}

export interface Token {
  readonly id: number;
  readonly text: string;
  readonly organization: Organization;
  readonly seesClusters: boolean;
  readonly madeAt: number;
  /** Milliseconds of `performance.now()`. */
  revokeBegun: number | undefined;
  /** When the commit of the revocation was confirmed. */
  revokedAt: number | undefined;
}

export const PROVIDER = { id: 1000, name: 'Oracle Cloud' } as const;
export const REGIONS = ['r0', 'r1', 'r2'] as const;
const MACHINES = ['m0', 'm1', 'm2', 'm3', 'm4'] as const;
/** Machines of each region at the start. */
const FIRST_MACHINES = 3;
export const MACHINE_KEYS = REGIONS.flatMap((region) => MACHINES.map((name) => `${region}/${name}`));
export const SLUGS = ['primary', 'events', 'metrics', 'test'] as const;
const CREATED_AT = '2022-02-14T10:11:26.56771';

/** Cpu and memory follow from the name, so that swapped machines are found. */
export const shapeOf = (name: string): { cpu: number; ram: number } => {
  const number = Number(name.slice(1));
  return { cpu: 2 + number, ram: 4 + 2 * number };
};
/** Every text of a cluster contains its organization. */
export const personOf = (organization: string): { first_name: string; last_name: string } => ({
  first_name: 'Ann',
  last_name: `of ${organization}`,
});
export const createdAtOf = (slug: string): string =>
  `${CREATED_AT}${SLUGS.indexOf(slug as (typeof SLUGS)[number])}`;
/** Returns the region of an organization's cluster with this slug. */
export const regionOf = (slug: string): string =>
  REGIONS[SLUGS.indexOf(slug as (typeof SLUGS)[number]) % REGIONS.length] ?? 'r0';
export const regionName = (code: string): string => `Region ${code}`;
export const DISK = {
  type: { name: 'gp', price: 0.0000012, unit: 'Decimal' },
  size: 150.5,
  unit: 'GB',
} as const;

const split = (key: string): [string, string] => {
  const [one = '', two = ''] = key.split('/');
  return [one, two];
};

export class Model {
  readonly machines: Feed<MachineRow>;
  readonly clusters: Feed<ClusterRow>;
  readonly organizations: Organization[] = [];
  readonly tokens: Token[] = [];
  /** The database makes ids: they are read once, or learned from the first answer with one. */
  readonly machineIds = new Map<string, number>();
  readonly regionIds = new Map<string, number>();
  readonly #texts = new Map<string, string>();

  constructor(organizations: readonly string[]) {
    this.machines = new Feed(
      new Map(
        MACHINE_KEYS.filter((key) => Number(key.at(-1)) < FIRST_MACHINES).map((key, i) => [
          key,
          { price: 100 + i, isListed: true },
        ]),
      ),
    );
    this.clusters = new Feed(
      new Map(
        organizations.map((slug) => [
          `${slug}/primary`,
          { name: `primary of ${slug}`, status: 'Active', shards: 1 },
        ]),
      ),
    );
  }

  machineKeyOf(id: number): string | undefined {
    for (const [key, known] of this.machineIds) if (known === id) return key;
    return undefined;
  }

  /** Returns the machine as JSON in this state; undefined if it is not published, or its id is unknown. */
  machine(key: string, index: number): string | undefined {
    const row = this.machines.at(index).rows.get(key);
    const id = this.machineIds.get(key);
    if (!row?.isListed || id === undefined) return undefined;
    return this.#text(`machine ${key} ${row.price}`, () => {
      const [code, name] = split(key);
      return {
        id,
        name,
        ...ordered(shapeOf(name)),
        price: row.price / 100_000,
        ram_unit: 'Binary',
        provider: PROVIDER,
        region: { id: this.regionIds.get(code), name: regionName(code), code },
      };
    });
  }

  /** Returns the list of a region; undefined while the id of a machine is unknown. */
  region(code: string, index: number): string | undefined {
    const rows = [...this.machines.at(index).rows]
      .filter(([key, { isListed }]) => isListed && split(key)[0] === code)
      .map(([key, { price }]) => ({ key, price, id: this.machineIds.get(key) }));
    if (rows.some(({ id }) => id === undefined)) return undefined;
    rows.sort((a, b) => a.price - b.price || Number(a.id) - Number(b.id));
    return `[${rows.map(({ key }) => this.machine(key, index)).join(',')}]`;
  }

  /** Returns the cluster as JSON; undefined if the control plane does not list it. */
  cluster(key: string, index: number): string | undefined {
    const row = this.clusters.at(index).rows.get(key);
    if (!row) return undefined;
    const [organization, slug] = split(key);
    const code = regionOf(slug);
    return this.#text(`cluster ${key} ${JSON.stringify(row)}`, () => {
      const { cpu, ram } = shapeOf('m0');
      return {
        name: row.name,
        slug,
        region: { name: regionName(code), code },
        provider: PROVIDER,
        status: row.status,
        shards: row.shards,
        replicas: 1,
        user: personOf(organization),
        machine: { ram, cpu, id: this.machineIds.get(`${code}/m0`), ram_unit: 'Binary' },
        disks: [{ ...DISK, autoscaling: false }],
        created_at: createdAtOf(slug),
      };
    });
  }

  #text(key: string, value: () => unknown): string {
    const known = this.#texts.get(key);
    if (known !== undefined) return known;
    const text = JSON.stringify(value());
    this.#texts.set(key, text);
    return text;
  }
}

const ordered = ({ cpu, ram }: { cpu: number; ram: number }) => ({ ram, cpu });
