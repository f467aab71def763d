import type { z } from 'zod';

const NAMED = 3;

/**
 * What a schema found wrong, for an operator: path and problem of the first few fields, and the number of the others.
 * It holds no value of the input: an upstream may echo a secret, which must not get into a log.
 */
export function problemsOf(error: z.core.$ZodError): string {
  const named = error.issues
    .slice(0, NAMED)
    .map((issue) => `${pathOf(issue.path)} ${problemText(issue.message)}`);
  const more = error.issues.length - named.length;
  return named.join('; ') + (more > 0 ? `; and ${more} more` : '');
}

/** `["prices", 0, "net"]` → `prices[0].net`; the whole payload where the path is empty. */
export function pathOf(path: readonly PropertyKey[]): string {
  if (path.length === 0) return 'the payload';
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else text += text === '' ? String(part) : `.${String(part)}`;
  }
  return text;
}

/** A schema's message in this project's words. */
export function problemText(message: string): string {
  return message
    .replace(/^Invalid input: (expected .*), received undefined$/, 'is missing ($1)')
    .replace(/^Invalid input: /, '');
}
