/** What organizations and people may be called. */

/** Slugs of organizations: what addresses, commands and control planes name them by. */
export const ORGANIZATION_SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** A name that can be shown, on one line, without the space around it; undefined for a text that is none. */
export function readName(text: string): string | undefined {
  const name = text.trim();
  return name === '' || /\p{Cc}/u.test(name) ? undefined : name;
}
