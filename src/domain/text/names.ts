/** Slugs of organizations, in addresses, commands and control planes. */
export const ORGANIZATION_SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Returns a name on one line without surrounding space, or undefined for a text that cannot be a name. */
export function readName(text: string): string | undefined {
  const name = text.trim();
  return name === '' || /\p{Cc}/u.test(name) ? undefined : name;
}
