/** Slugs of organizations, in addresses, commands and control planes. */
export const ORGANIZATION_SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Returns the two names of `name@region`; undefined for another text. */
export function readPlace(text: string): { readonly name: string; readonly region: string } | undefined {
  const at = text.lastIndexOf('@');
  const [name, region] = [text.slice(0, Math.max(at, 0)).trim(), text.slice(at + 1).trim()];
  return name === '' || region === '' ? undefined : { name, region };
}
