import type { z } from 'zod';
import { PlainFailure } from './errors.ts';

/** An input of a person or a program is refused. Nothing has changed. */
export class BadInput extends PlainFailure {
  override readonly name = 'BadInput';
  readonly field: string;
  /** What is wrong, and which values are accepted. It follows the name of the field in a sentence. */
  readonly problem: string;

  constructor(field: string, problem: string) {
    super(`${field} ${problem}`);
    this.field = field;
    this.problem = problem;
  }
}

/** Reads the fields that the schema has, and ignores others. @throws BadInput for the first field that is wrong */
export function readInput<T>(schema: z.ZodType<T>, given: unknown): T {
  const read = schema.safeParse(given ?? {});
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new BadInput(String(issue?.path[0] ?? 'input'), issue?.message ?? 'is wrong');
}
