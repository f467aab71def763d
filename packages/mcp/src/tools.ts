/** The tools. They read through the API's client. */
import {
  type Answer,
  type FleetbookClient,
  FleetbookProblem,
  type LifecycleQuestion,
  type Machine,
  type MachineFilter,
  type MachineWithFacts,
} from '../../client/src/index.ts';
import { ToolFailure } from './failure.ts';
import { idsOf } from './names.ts';
import type {
  CheaperMachinesInput,
  ClusterCostInput,
  ClusterVersionsInput,
  CompareInput,
  RecommendInput,
  SearchInput,
} from './schemas.ts';

const DEFAULT_LIMIT = 20;
const MINUTES_PER_HOUR = 60;

/** Removes rounding errors of the multiplication. */
const rounded = (value: number) => Number(value.toPrecision(12));

const withHourlyPrice = <M extends Machine>(machine: M) => ({
  ...machine,
  price_per_hour: rounded(machine.price * MINUTES_PER_HOUR),
});

/** The answer states prices per hour with twelve digits. A machine at exactly that price must be within the limit. */
const ROUNDING = 1e-11;

function mostPerMinute(perHour: number): number {
  const perMinute = rounded(perHour / MINUTES_PER_HOUR);
  // Most prices per hour have no decimal per minute.
  return perMinute * MINUTES_PER_HOUR === perHour ? perMinute : (perHour / MINUTES_PER_HOUR) * (1 + ROUNDING);
}

const metaOf = ({ currency, asOf }: Answer<unknown>) => ({ currency: currency ?? null, as_of: asOf ?? null });

type Filters = Pick<
  SearchInput,
  'providers' | 'regions' | 'countries' | 'continents' | 'architecture' | 'cpu_kind' | 'ram_unit'
>;

/** Returns the filters of searches and recommendations, with ids instead of names. */
async function filterOf(
  client: FleetbookClient,
  filters: Filters,
  signal: AbortSignal,
): Promise<MachineFilter> {
  const { providers, regions, countries: country, continents: continent, ...rest } = filters;
  const { architecture, cpu_kind, ram_unit } = rest;
  const needsIds = providers !== undefined || regions !== undefined;
  const known = needsIds ? (await client.providers({ signal })).data : [];
  return { ...idsOf(known, providers, regions), country, continent, architecture, cpu_kind, ram_unit };
}

export async function searchMachines(client: FleetbookClient, input: SearchInput, signal: AbortSignal) {
  const {
    max_price_per_hour: perHour,
    limit = DEFAULT_LIMIT,
    providers: _,
    regions: __,
    countries: ___,
    continents: ____,
    ...question
  } = input;
  const filter = await filterOf(client, input, signal);
  const max_price = perHour === undefined ? undefined : mostPerMinute(perHour);
  const page = await client.search({ ...question, ...filter, max_price, limit }, { signal });
  const { machines, next, ram_unit } = page.data;
  return { machines: machines.map(withHourlyPrice), next, ram_unit, ...metaOf(page) };
}

export async function recommendMachine(client: FleetbookClient, input: RecommendInput, signal: AbortSignal) {
  const { providers: _, regions: __, countries: ___, continents: ____, ...question } = input;
  const answer = await client.recommend(
    { ...question, ...(await filterOf(client, input, signal)) },
    { signal },
  );
  const recommendations = answer.data.recommendations.map((each) => ({
    ...each,
    machine: withHourlyPrice(each.machine),
  }));
  return { recommendations, ram_unit: answer.data.ram_unit, ...metaOf(answer) };
}

export async function comparePrices(client: FleetbookClient, input: CompareInput, signal: AbortSignal) {
  const named =
    input.machine_id === undefined ? undefined : await pricedMachine(client, input.machine_id, signal);
  const answer = await client.recommend(
    { ...sizeOf(input, named), ...(await filterOf(client, compareFilters(input, named), signal)) },
    { signal },
  );
  const others = answer.data.recommendations.map(({ machine }) => machine);
  const machines: (Machine | MachineWithFacts)[] = named
    ? [others.find(({ id }) => id === named.id) ?? named, ...others.filter(({ id }) => id !== named.id)]
    : others;
  const cheapest = Math.min(...machines.map(({ price }) => price));
  const offers = await Promise.all(
    machines.map(async (machine) => ({
      machine: withHourlyPrice(machine),
      times_cheapest: timesCheapest(machine.price, cheapest),
      ...(input.history !== false && { history: await historyOf(client, machine.id, signal) }),
    })),
  );
  return { offers, ram_unit: answer.data.ram_unit, ...metaOf(answer) };
}

/** An own price may be 0, which no number divides. */
function timesCheapest(price: number, cheapest: number): number | null {
  if (price === cheapest) return 1;
  return cheapest === 0 ? null : rounded(price / cheapest);
}

/** Returns a machine at the organization's price, which only searches have. */
async function pricedMachine(client: FleetbookClient, id: number, signal: AbortSignal): Promise<Machine> {
  const { data: machine } = await client.machine(id, { signal });
  const { name, region } = machine;
  const { data } = await client.search({ name, region: region.id, available: 'all', limit: 500 }, { signal });
  return data.machines.find((found) => found.id === id) ?? machine;
}

/** Reads the past prices. Returns undefined if the machine has just left the catalogue. */
async function historyOf(client: FleetbookClient, id: number, signal: AbortSignal) {
  try {
    return (await client.prices(id, { signal })).data;
  } catch (error) {
    if (error instanceof FleetbookProblem && error.status === 404) return undefined;
    throw error;
  }
}

/** Returns the size to compare with. @throws ToolFailure if the input names both a machine and a size, or neither */
function sizeOf({ machine_id, cpu, ram }: CompareInput, named: Machine | undefined) {
  const hasSize = cpu !== undefined && ram !== undefined;
  if (machine_id !== undefined && (cpu !== undefined || ram !== undefined))
    throw new ToolFailure('Give machine_id, or cpu and ram, but not both.');
  if (named) return { cpu: named.cpu, ram: named.ram };
  if (hasSize) return { cpu, ram };
  throw new ToolFailure('Give machine_id, or both cpu and ram.');
}

/** Returns the filters. An exact comparison with a machine must use the machine's unit, which its size is in. */
function compareFilters(
  { providers, countries, continents, ram_unit }: CompareInput,
  named: Machine | undefined,
): Filters {
  const isExact = ram_unit === 'Binary' || ram_unit === 'Decimal';
  return { providers, countries, continents, ram_unit: isExact ? (named?.ram_unit ?? ram_unit) : ram_unit };
}

export async function listProviders(client: FleetbookClient, signal: AbortSignal) {
  const answer = await client.providers({ signal });
  return { providers: answer.data, as_of: metaOf(answer).as_of };
}

export async function clusterCost(client: FleetbookClient, input: ClusterCostInput, signal: AbortSignal) {
  const { slug, limit, cursor, ...question } = input;
  if (slug === undefined) {
    const answer = await client.costs({ ...question, limit, cursor }, { signal });
    return { costs: answer.data, ...metaOf(answer) };
  }
  if (limit !== undefined || cursor !== undefined)
    throw new ToolFailure('Give slug, or limit and cursor of all clusters, but not both.');
  const answer = await client.clusterCost(slug, question, { signal });
  return { cost: answer.data, ...metaOf(answer) };
}

export async function clusterVersions(
  client: FleetbookClient,
  { slug, engines, ...question }: ClusterVersionsInput,
  signal: AbortSignal,
) {
  if (slug === undefined) {
    // The API checks the words, and its message names the known ones.
    const engine = engines as LifecycleQuestion['engine'];
    const answer = await client.lifecycle({ ...question, engine }, { signal });
    return { versions: answer.data, as_of: metaOf(answer).as_of };
  }
  if (engines !== undefined || Object.values(question).some((value) => value !== undefined))
    throw new ToolFailure('Give slug, or within, engines, limit and cursor of all clusters, but not both.');
  const answer = await client.clusterDetails(slug, { signal });
  return { version: answer.data, as_of: metaOf(answer).as_of };
}

export async function cheaperMachines(
  client: FleetbookClient,
  input: CheaperMachinesInput,
  signal: AbortSignal,
) {
  const { slug, ...question } = input;
  const answer = await client.alternatives(slug, question, { signal });
  const { machine, same_region, same_provider, anywhere } = answer.data;
  return { machine, same_region, same_provider, anywhere, ...metaOf(answer) };
}

export async function listClusters(client: FleetbookClient, signal: AbortSignal) {
  const answer = await client.clusters({ signal });
  return { clusters: answer.data, as_of: metaOf(answer).as_of };
}

export async function getCluster(client: FleetbookClient, slug: string, signal: AbortSignal) {
  const answer = await client.cluster(slug, { signal });
  return { cluster: answer.data, as_of: metaOf(answer).as_of };
}
