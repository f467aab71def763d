/** Returns `machine` or `machines`, `batch` or `batches`, for the number. */
export function noun(n: number, singular: string): string {
  if (n === 1) return singular;
  return /(?:s|x|z|ch|sh)$/.test(singular) ? `${singular}es` : `${singular}s`;
}

/** Returns a price per minute as a price per hour, with a few significant digits. */
export function hourly(perMinute: number, digits: 4 | 5 = 4): string {
  return String(Number((perMinute * 60).toPrecision(digits)));
}

const UNITS = ['B', 'kB', 'MB', 'GB'] as const;

export function bytesInWords(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const value = bytes / 1000 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`;
}

export const msInWords = (ms: number): string =>
  ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
