import type { FastifyInstance } from 'fastify';
import { storedCurrency } from '../../../db/prices/currency.ts';
import { BadInput } from '../../../domain/input.ts';
import { CONTINENTS, COUNTRIES_OF, COUNTRY, continentOf } from '../../../domain/region-country.ts';
import { readPriceHistory } from '../../../market/market.ts';
import { choiceOf, idOf, integerOf, NotFound, numberOf, textOf, windowOf } from '../../../ops/parameters.ts';
import {
  catalogueCountries,
  cataloguePlaces,
  MACHINE_SORTS,
  MACHINES_COUNTED,
  type MachineSearch,
  machineDetail,
  machinePoints,
  searchMachines,
} from '../queries/machines.ts';
import type { MachineAnswer, MachinesAnswer, PlacesAnswer, PointsAnswer } from './answers.ts';
import type { ConsoleContext } from './context.ts';
import { machineCosts, machinePriced } from './costs/machine-costs.ts';

/** More cpu, and more GB, than any machine has. */
const LARGEST = 1_000_000;

export function addMachines(api: FastifyInstance, { db }: ConsoleContext): void {
  const currency = async () => (await storedCurrency(db)) ?? null;
  api.get('/machines', async (request): Promise<MachinesAnswer> => {
    const search = machineSearch(request.query);
    const [found, unit] = await Promise.all([searchMachines(db, search), currency()]);
    return { ...found, currency: unit };
  });
  api.get('/machines/points', async (request): Promise<PointsAnswer> => {
    const search = machineSearch(request.query);
    const [found, unit] = await Promise.all([machinePoints(db, search), currency()]);
    return { ...found, currency: unit };
  });
  api.get('/places', async (): Promise<PlacesAnswer> => {
    const [providers, countries] = await Promise.all([cataloguePlaces(db), catalogueCountries(db)]);
    return { providers, countries, continents: CONTINENTS };
  });
  api.get('/machines/:id', async (request): Promise<MachineAnswer> => {
    const id = idOf(request.params, 'id', 'machine');
    const [machine, priced, history, unit] = await Promise.all([
      machineDetail(db, id),
      machinePriced(db, id),
      readPriceHistory(db, id, undefined),
      currency(),
    ]);
    if (!machine || !priced) throw new NotFound(`there is no machine ${id}`);
    return { ...machine, ...machineCosts(priced, history.terms), currency: unit };
  });
}

function machineSearch(query: unknown): MachineSearch {
  const { limit } = windowOf(query);
  return {
    text: textOf(query, 'q'),
    providerId: integerOf(query, 'provider', 1, 2_147_483_647),
    region: textOf(query, 'region'),
    countries: countriesIn(query),
    minCpu: integerOf(query, 'min_cpu', 0, LARGEST),
    maxCpu: integerOf(query, 'max_cpu', 0, LARGEST),
    minRam: numberOf(query, 'min_ram', 0, LARGEST),
    maxRam: numberOf(query, 'max_ram', 0, LARGEST),
    published: choiceOf(query, 'published', ['yes', 'no', 'all']) ?? 'yes',
    sort: choiceOf(query, 'sort', MACHINE_SORTS) ?? 'price',
    descending: choiceOf(query, 'order', ['asc', 'desc']) === 'desc',
    limit,
    // No row is counted beyond this: an operator narrows the search instead.
    offset: integerOf(query, 'offset', 0, MACHINES_COUNTED) ?? 0,
  };
}

/** Returns the countries of the parameters `country` and `continent`; undefined without both. */
function countriesIn(query: unknown): readonly string[] | undefined {
  const country = textOf(query, 'country');
  const continent = choiceOf(query, 'continent', CONTINENTS);
  if (country !== undefined && !COUNTRY.test(country))
    throw new BadInput('country', `must be two letters of ISO 3166-1 such as DE; it is "${country}"`);
  if (country === undefined) return continent && COUNTRIES_OF[continent];
  const code = country.toUpperCase();
  return continent === undefined || continentOf(code) === continent ? [code] : [];
}
