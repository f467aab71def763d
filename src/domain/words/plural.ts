/** Numbers with their nouns. Pure. */

/** `machine` or `machines`, `batch` or `batches`, by their number. */
export function noun(n: number, what: string): string {
  if (n === 1) return what;
  return /(?:s|x|z|ch|sh)$/.test(what) ? `${what}es` : `${what}s`;
}
