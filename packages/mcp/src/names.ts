/** Ids for the names of providers and regions, which is what people and models know. Pure. */
import type { Provider } from '../../client/src/index.ts';
import { ToolFailure } from './failure.ts';

type Named = readonly (string | number)[] | undefined;

/** Names of providers that an error lists. */
const LISTED = 40;

/**
 * @param regions names or codes; they are looked for in those providers alone, where some are named
 * @throws ToolFailure that says which name there is not, and which there are
 */
export function idsOf(known: readonly Provider[], providers: Named, regions: Named) {
  const chosen = providers?.map((wanted) => find(known, wanted));
  const among = (chosen ?? known).flatMap((provider) => provider.regions);
  return {
    provider: chosen?.map(({ id }) => id),
    region: regions && [...new Set(regions.flatMap((wanted) => regionIds(among, wanted)))],
  };
}

function find(known: readonly Provider[], wanted: string | number): Provider {
  const found = known.find(({ id, name }) => id === wanted || isSame(name, wanted));
  if (found) return found;
  const names = known.slice(0, LISTED).map(({ name }) => name);
  throw new ToolFailure(`There is no provider ${JSON.stringify(wanted)}. There are: ${names.join(', ')}.`);
}

/** Several providers may have a region of one name or code: all of them are meant. */
function regionIds(regions: Provider['regions'], wanted: string | number): number[] {
  const found = regions.filter(
    ({ id, name, code }) => id === wanted || isSame(name, wanted) || isSame(code, wanted),
  );
  if (found.length > 0) return found.map(({ id }) => id);
  const codes = regions.slice(0, LISTED).map(({ name, code }) => `${code} (${name})`);
  const more = regions.length > LISTED ? `, and ${regions.length - LISTED} more` : '';
  throw new ToolFailure(
    `There is no region ${JSON.stringify(wanted)} there. There are: ${codes.join(', ')}${more}.`,
  );
}

function isSame(name: string, wanted: string | number): boolean {
  return typeof wanted === 'string' && name.toLowerCase() === wanted.trim().toLowerCase();
}
