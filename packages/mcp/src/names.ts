/** Translates names of providers and regions into ids: people and models know the names. Pure. */
import type { Provider } from '../../client/src/index.ts';
import { ToolFailure } from './failure.ts';

type NamesOrIds = readonly (string | number)[] | undefined;

/** Maximum number of names in an error message. */
const MAX_NAMES = 40;

/**
 * Returns the ids of providers and regions.
 * @param regions names, codes or ids; only regions of `providers` match, if any are given
 * @throws ToolFailure that names the unknown provider or region, and the known ones
 */
export function idsOf(known: readonly Provider[], providers: NamesOrIds, regions: NamesOrIds) {
  const chosen = providers?.map((wanted) => findProvider(known, wanted));
  const candidates = (chosen ?? known).flatMap((provider) => provider.regions);
  return {
    provider: chosen?.map(({ id }) => id),
    region: regions && [...new Set(regions.flatMap((wanted) => regionIds(candidates, wanted)))],
  };
}

function findProvider(known: readonly Provider[], wanted: string | number): Provider {
  const found = known.find(({ id, name }) => id === wanted || isSame(name, wanted));
  if (found) return found;
  const names = known.slice(0, MAX_NAMES).map(({ name }) => name);
  throw new ToolFailure(`Unknown provider ${JSON.stringify(wanted)}. Known providers: ${names.join(', ')}.`);
}

/**
 * Returns all regions that match: several providers may have a region with the same name or code. If none is equal, words of a name
 * match too, so `Berlin` finds `Berlin, DE`.
 */
function regionIds(regions: Provider['regions'], wanted: string | number): number[] {
  const equal = regions.filter(
    ({ id, name, code }) => id === wanted || isSame(name, wanted) || isSame(code, wanted),
  );
  const found = equal.length > 0 ? equal : regions.filter(({ name }) => hasWords(name, wanted));
  if (found.length > 0) return found.map(({ id }) => id);
  const codes = regions.slice(0, MAX_NAMES).map(({ name, code }) => `${code} (${name})`);
  const more = regions.length > MAX_NAMES ? `, and ${regions.length - MAX_NAMES} more` : '';
  throw new ToolFailure(
    `Unknown region ${JSON.stringify(wanted)}. Known regions: ${codes.join(', ')}${more}.`,
  );
}

function isSame(name: string, wanted: string | number): boolean {
  return typeof wanted === 'string' && name.toLowerCase() === wanted.trim().toLowerCase();
}

function hasWords(name: string, wanted: string | number): boolean {
  const words = typeof wanted === 'string' ? inWords(wanted) : '';
  return words.trim() !== '' && inWords(name).includes(words);
}

/** Returns the words of a name in lower case, each between two blanks. */
const inWords = (text: string): string =>
  ` ${
    text
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu)
      ?.join(' ') ?? ''
  } `;
