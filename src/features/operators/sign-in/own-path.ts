const HERE = 'http://here.invalid';
/** Browsers read a backslash as a slash, and drop some control characters. */
const AMBIGUOUS = /[\p{Cc}\\]/u;

/** Returns a path of this origin; `/` for other texts. The parsed path is checked again: `/.//host` becomes `//host`. */
export function ownPath(text: string | undefined): string {
  if (text === undefined || !isPath(text)) return '/';
  const url = URL.parse(text, HERE);
  if (url?.origin !== HERE || url.pathname === '/login') return '/';
  const path = url.pathname + url.search;
  return isPath(path) ? path : '/';
}

const isPath = (text: string): boolean => /^\/(?!\/)/.test(text) && !AMBIGUOUS.test(text);
