import type { z } from 'zod';

const NAMED = 3;

/**
 * Returns a schema's problems for an operator: path and problem of the first fields, and the count of the others. Contains
 * no value of the input: an upstream may echo a secret, which must not be logged.
 */
export function problemsOf(error: z.core.$ZodError): string {
  const named = error.issues
    .slice(0, NAMED)
    .map((issue) => `${pathOf(issue.path)} ${problemText(issue.message)}`);
  const more = error.issues.length - named.length;
  return named.join('; ') + (more > 0 ? `; and ${more} more` : '');
}

/** `["prices", 0, "net"]` → `prices[0].net`; an empty path is the whole payload. */
export function pathOf(path: readonly PropertyKey[]): string {
  if (path.length === 0) return 'the payload';
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += text === '' ? String(part) : `.${String(part)}`;
  }
  return text;
}

export function problemText(message: string): string {
  return message
    .replace(/^Invalid input: (expected .*), received undefined$/, 'is missing ($1)')
    .replace(/^Invalid input: /, '');
}
