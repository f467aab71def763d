/** Values of the configuration as they may be shown: a secret is never shown, and no part of one. */

export const MASK = '***';

/** An address without what may be a secret in it: user, password, and the values of its query. Other text as it is. */
export function maskedAddress(text: string): string {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return text;
  if (!URL.canParse(text)) return MASK;
  const url = new URL(text);
  const query = [...url.searchParams.keys()].map((name) => `${encodeURIComponent(name)}=${MASK}`).join('&');
  const user = url.username || url.password ? `${MASK}@` : '';
  const path =
    url.pathname === '/' && !/\/(?:[?#]|$)/.test(text.replace(/^[^:]+:\/\//, '')) ? '' : url.pathname;
  return `${url.protocol}//${user}${url.host}${path}${query && `?${query}`}`;
}

/** The program alone: a command's arguments may hold a secret. */
export function maskedCommand(words: readonly string[]): string {
  const [program = ''] = words;
  return words.length > 1 ? `${program} ${MASK}` : program;
}

/** The same of text as `<ID>_TOKEN_COMMAND` has it: plain words or a JSON list. */
export function maskedCommandText(text: string): string {
  if (!text.trim().startsWith('[')) return maskedCommand(text.trim().split(/\s+/));
  try {
    const words: unknown = JSON.parse(text);
    return Array.isArray(words) ? maskedCommand(words.map(String)) : MASK;
  } catch {
    return MASK;
  }
}
