import slugify from '@sindresorhus/slugify';

/** Slugs of organizations, in addresses, commands and control planes. */
export const ORGANIZATION_SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Returns a name on one line without surrounding space, or undefined for a text that cannot be a name. */
export function readName(text: string): string | undefined {
  const name = text.trim();
  return name === '' || /\p{Cc}/u.test(name) ? undefined : name;
}

/** Returns the slug of a name: ASCII, lower case, words joined by `-`; `cluster` if nothing is left. */
export function slugOf(name: string): string {
  return slugify(name, { decamelize: false }) || 'cluster';
}

/** Returns the wanted slug, or with the first free suffix `-2`, `-3`, … Deterministic for a fixed order of names. */
export function freeSlug(wanted: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wanted)) return wanted;
  for (let n = 2; ; n++) {
    const candidate = `${wanted}-${n}`;
    if (!taken.has(candidate)) return candidate;
  }
}
