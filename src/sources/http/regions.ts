import { type CatalogueItem, SourceError } from '../source.ts';

/**
 * Reads the regions of a source one by one. Yields the items of each region that was read whole, and the others as unread.
 * @param unreadable failures of further regions that cannot be read
 * @throws the most promising failure if no region could be read; an error that concerns every region (`limitsAll`)
 */
export async function* eachRegion(
  codes: Iterable<string>,
  read: (code: string) => Promise<Iterable<CatalogueItem>>,
  unreadable: readonly SourceError[] = [],
): AsyncGenerator<CatalogueItem> {
  const failures: SourceError[] = [];
  let isAnyRead = false;
  for (const regionCode of codes) {
    const items = await read(regionCode).catch(failureOfRegion);
    if (items instanceof SourceError) {
      failures.push(items);
      yield { kind: 'unread', regionCode, reason: `${items.message}; its machines stay as they were` };
    } else {
      isAnyRead = true;
      yield* items;
    }
  }
  const all = [...failures, ...unreadable];
  // The run is repeated soonest after a `retry`.
  const failure = all.find(({ kind }) => kind === 'retry') ?? all[0];
  if (!isAnyRead && failure !== undefined) throw failure;
}

function failureOfRegion(error: unknown): SourceError {
  if (error instanceof SourceError && !error.limitsAll) return error;
  throw error;
}
