/** Finds providers, regions and machines by the names that people use. */
import type { Sql } from '../../db/connection/client.ts';
import { readPlace } from '../../domain/text/names.ts';
import type { GivenEntry } from './answers.ts';
import { BadEntry } from './bad-entry.ts';

export interface Names {
  /** @throws BadEntry */
  provider(text: string): number;
  /** @param text the code @throws BadEntry */
  region(text: string, providerId: number | undefined): number;
  /** @param text `name@region`, or an id @throws BadEntry */
  machine(text: string, providerId: number | undefined): number;
}

interface Named {
  readonly id: number;
  readonly name: string;
}
interface Placed extends Named {
  readonly providerId: number;
  readonly provider: string;
}

const SHOWN = 20;

/** Reads the names that these entries use. */
export async function readNames(sql: Sql, given: readonly GivenEntry[]): Promise<Names> {
  const machines = given.flatMap(({ machine }) => machine ?? []);
  const places = machines.flatMap((text) => readPlace(text) ?? []);
  const ids = machines.flatMap((text) => (/^[1-9]\d{0,8}$/.test(text) ? [Number(text)] : []));
  const [providers, regions, found] = await Promise.all([
    sql<Named[]>`select id, name from providers where listed order by name`,
    sql<Placed[]>`
      select r.id, r.code as name, p.id as "providerId", p.name as provider
      from regions r join providers p on p.id = r.provider_id
      where p.listed and r.organization_id is null order by r.id`,
    sql<(Placed & { region: string })[]>`
      select m.id, m.name, r.code as region, p.id as "providerId", p.name as provider
      from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
      where p.listed and r.organization_id is null and (m.id = any(${ids}::integer[]) or exists (
        select from unnest(${places.map(({ name }) => name)}::text[], ${places.map(({ region }) => region)}::text[])
          given (name, region)
        where given.name = m.name and given.region = r.code))
      order by m.id`,
  ]);
  return {
    provider(text) {
      const same = ({ id, name }: Named) =>
        String(id) === text || name.toLowerCase() === text.trim().toLowerCase();
      const provider = providers.find(same);
      if (provider) return provider.id;
      const known = providers
        .map(({ name }) => name)
        .slice(0, SHOWN)
        .join(', ');
      throw unknown('provider', text, known === '' ? 'no catalogue is stored yet' : `give one of ${known}`);
    },
    region(text, providerId) {
      const named = regions.filter(({ name }) => name === text.trim());
      const region = onlyOne('region', text, named, providerId);
      if (region) return region.id;
      const known = regions.filter((each) => each.providerId === providerId).map(({ name }) => name);
      throw unknown(
        'region',
        text,
        known.length === 0
          ? 'give a code that /v1/providers lists'
          : `the provider has ${known.slice(0, SHOWN).join(', ')}`,
      );
    },
    machine(text, providerId) {
      const place = readPlace(text);
      const named = found.filter(({ id, name, region }) =>
        place === undefined ? String(id) === text : name === place.name && region === place.region,
      );
      const machine = onlyOne('machine', text, named, providerId);
      if (machine) return machine.id;
      throw unknown('machine', text, 'give name@region or an id, as `fleetbook machines` shows them');
    },
  };
}

const unknown = (field: 'provider' | 'region' | 'machine', text: string, remedy: string) =>
  new BadEntry(field, `${JSON.stringify(text)} is unknown`, remedy);

/** Returns the one of the provider. @throws BadEntry if several providers have the name */
function onlyOne(
  field: 'region' | 'machine',
  text: string,
  named: readonly Placed[],
  providerId: number | undefined,
): Placed | undefined {
  const [first, ...others] = named.filter((each) => (providerId ?? each.providerId) === each.providerId);
  if (others.length === 0) return first;
  const providers = [first, ...others].map((each) => each?.provider).join(', ');
  throw new BadEntry(field, `"${text}" exists with several providers`, `give the provider: ${providers}`);
}
