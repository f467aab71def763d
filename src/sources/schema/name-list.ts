import { z } from 'zod';

/** An option that holds several names. */
export const nameList = z.string().regex(/^[a-z0-9_-]+( *, *[a-z0-9_-]+)*$/i, {
  error: 'must be names separated by commas',
});

/** Each of them once. */
export function listedNames(text: string): ReadonlySet<string> {
  return new Set(text.split(',').map((name) => name.trim()));
}
