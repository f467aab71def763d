import slugify from '@sindresorhus/slugify';

/** The slug of a name: transliterated to ASCII, lower case, words joined by `-`; `cluster` when nothing is left. */
export function slugOf(name: string): string {
  return slugify(name, { decamelize: false }) || 'cluster';
}

/**
 * The slug to use where `wanted` may be taken: itself, else with the first free suffix `-2`, `-3`, …
 * Deterministic as long as names come in a fixed order.
 */
export function freeSlug(wanted: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wanted)) return wanted;
  for (let n = 2; ; n++) {
    const candidate = `${wanted}-${n}`;
    if (!taken.has(candidate)) return candidate;
  }
}
