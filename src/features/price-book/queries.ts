/** Reads price books, and the names that entries use. */
import type { Database } from '../../db/connection/connect.ts';
import { alias, and, desc, eq, isNull, or, type SQL, sql } from '../../db/connection/drizzle.ts';
import { array, rfc3339 } from '../../db/connection/statements.ts';
import type { Organization } from '../../db/organizations.ts';
import { lineage, machines, priceBookEntries, providers, regions } from '../../db/schema.ts';
import { readPlace } from '../../domain/text/names.ts';
import type { GivenEntry, PriceBookAnswer, PriceBookFile, ShownEntry } from './answers.ts';
import { BadEntry, ENTRY_FIELDS, type Names } from './entries.ts';

const { organizationId, validFrom, validTo } = priceBookEntries;

/** Returns a book, the newest entry first. @param endedToo includes ended entries */
export async function readPriceBook(
  db: Database,
  { id, slug }: Organization,
  endedToo: boolean,
): Promise<PriceBookAnswer> {
  const isOpen = or(isNull(validTo), sql`${validTo} > clock_timestamp()`);
  const [entries, [row]] = await Promise.all([
    shownEntries(db, and(eq(organizationId, id), endedToo ? undefined : isOpen)),
    db.select({ currency: lineage.currency }).from(lineage),
  ]);
  return { organization: slug, currency: row?.currency ?? null, entries };
}

export async function readShownEntry(db: Database, id: number): Promise<ShownEntry | undefined> {
  return (await shownEntries(db, eq(priceBookEntries.id, id)))[0];
}

async function shownEntries(db: Database, condition: SQL | undefined): Promise<ShownEntry[]> {
  const [ofRegion, ofMachine] = [alias(providers, 'of_region'), alias(providers, 'of_machine')];
  const machineRegions = alias(regions, 'machine_regions');
  const { id, family, term, discount, price } = priceBookEntries;
  const entry = sql<ShownEntry>`json_strip_nulls(json_build_object(
    'id', ${id},
    'provider', coalesce(${providers.name}, ${ofRegion.name}, ${ofMachine.name}),
    'region', ${regions.code},
    'family', ${family},
    'machine', ${machines.name} || '@' || ${machineRegions.code},
    'term', ${term},
    'discount', trim_scale(${discount})::text,
    'price', trim_scale(${price})::text,
    'from', ${rfc3339(validFrom, 'ms')},
    'to', ${rfc3339(validTo, 'ms')},
    'state', case when ${validTo} <= clock_timestamp() then 'ended'
      when ${validFrom} > clock_timestamp() then 'begins later' else 'applies' end))`;
  const rows = await db
    .select({ entry })
    .from(priceBookEntries)
    .leftJoin(providers, eq(providers.id, priceBookEntries.providerId))
    .leftJoin(regions, eq(regions.id, priceBookEntries.regionId))
    .leftJoin(ofRegion, eq(ofRegion.id, regions.providerId))
    .leftJoin(machines, eq(machines.id, priceBookEntries.machineId))
    .leftJoin(machineRegions, eq(machineRegions.id, machines.regionId))
    .leftJoin(ofMachine, eq(ofMachine.id, machineRegions.providerId))
    .where(condition)
    .orderBy(desc(id));
  return rows.map((row) => row.entry);
}

/** Returns the file of a book, the oldest entry first. An import of it changes nothing. */
export function fileOf({ organization, currency, entries }: PriceBookAnswer): PriceBookFile {
  const given = entries.toReversed().map((entry) => {
    const fields = ENTRY_FIELDS.flatMap((field) =>
      entry[field] === undefined ? [] : [[field, entry[field]]],
    );
    return Object.fromEntries(fields) as GivenEntry;
  });
  return { organization, ...(currency === null ? {} : { currency }), entries: given };
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
export async function readNames(db: Database, given: readonly GivenEntry[]): Promise<Names> {
  const texts = given.flatMap(({ machine }) => machine ?? []);
  const places = texts.flatMap((text) => readPlace(text) ?? []);
  const ids = texts.flatMap((text) => (/^[1-9]\d{0,8}$/.test(text) ? [Number(text)] : []));
  const placed = { providerId: providers.id, provider: providers.name };
  const isInCatalogue = and(eq(providers.listed, true), isNull(regions.organizationId));
  const [knownProviders, knownRegions, knownMachines] = await Promise.all([
    db
      .select({ id: providers.id, name: providers.name })
      .from(providers)
      .where(eq(providers.listed, true))
      .orderBy(providers.name),
    db
      .select({ id: regions.id, name: regions.code, ...placed })
      .from(regions)
      .innerJoin(providers, eq(providers.id, regions.providerId))
      .where(isInCatalogue)
      .orderBy(regions.id),
    db
      .select({ id: machines.id, name: machines.name, region: regions.code, ...placed })
      .from(machines)
      .innerJoin(regions, eq(regions.id, machines.regionId))
      .innerJoin(providers, eq(providers.id, regions.providerId))
      .where(and(isInCatalogue, or(sql`${machines.id} = any(${array(ids, 'integer')})`, isOneOf(places))))
      .orderBy(machines.id),
  ]);
  return {
    provider(text) {
      const same = ({ id, name }: Named) =>
        String(id) === text || name.toLowerCase() === text.trim().toLowerCase();
      const provider = knownProviders.find(same);
      if (provider) return provider.id;
      const known = knownProviders
        .map(({ name }) => name)
        .slice(0, SHOWN)
        .join(', ');
      throw unknown('provider', text, known === '' ? 'no catalogue is stored yet' : `give one of ${known}`);
    },
    region(text, providerId) {
      const named = knownRegions.filter(({ name }) => name === text.trim());
      const region = onlyOne('region', text, named, providerId);
      if (region) return region.id;
      const known = knownRegions.filter((each) => each.providerId === providerId).map(({ name }) => name);
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
      const named = knownMachines.filter(({ id, name, region }) =>
        place === undefined ? String(id) === text : name === place.name && region === place.region,
      );
      const machine = onlyOne('machine', text, named, providerId);
      if (machine) return machine.id;
      throw unknown('machine', text, 'give name@region or an id, as `fleetbook machines` shows them');
    },
  };
}

/** Selects the machines with these names in these regions. */
function isOneOf(places: readonly { readonly name: string; readonly region: string }[]): SQL {
  const names = array(
    places.map(({ name }) => name),
    'text',
  );
  const codes = array(
    places.map(({ region }) => region),
    'text',
  );
  return sql`exists (select from unnest(${names}, ${codes}) given (name, region)
    where given.name = ${machines.name} and given.region = ${regions.code})`;
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
