export const MASK = '***';

/** Masks user, password and the values of the query of an address. Returns any other text unchanged. */
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

export function maskedCommand(words: readonly string[]): string {
  const [program = ''] = words;
  return words.length > 1 ? `${program} ${MASK}` : program;
}

/** Masks the arguments of a command in the form of `<ID>_TOKEN_COMMAND`: plain words or a JSON list. */
export function maskedCommandText(text: string): string {
  if (!text.trim().startsWith('[')) return maskedCommand(text.trim().split(/\s+/));
  try {
    const words: unknown = JSON.parse(text);
    return Array.isArray(words) ? maskedCommand(words.map(String)) : MASK;
  } catch {
    return MASK;
  }
}
