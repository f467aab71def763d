/** Paths of this site alone, for redirects. */
const HERE = 'http://here.invalid';
/** A backslash or a control character: browsers read the first as a slash and drop some of the others. */
const AMBIGUOUS = /[\p{Cc}\\]/u;

/**
 * A path of this origin, with its query, for a redirect to it; `/` for any other text and for the sign-in page.
 * Parsing resolves `.` and `..`, so the parsed path is checked as well: `/.//host` becomes `//host`, another origin.
 */
export function ownPath(text: string | undefined): string {
  if (text === undefined || !isPath(text)) return '/';
  const url = URL.parse(text, HERE);
  if (url?.origin !== HERE || url.pathname === '/login') return '/';
  const path = url.pathname + url.search;
  return isPath(path) ? path : '/';
}

const isPath = (text: string): boolean => /^\/(?!\/)/.test(text) && !AMBIGUOUS.test(text);
