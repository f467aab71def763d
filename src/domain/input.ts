import { z } from 'zod';
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

/** The id of a stored row, as text: a positive integer of 32 bits. */
export const rowId = z
  .string()
  .regex(/^[1-9]\d{0,9}$/)
  .transform(Number)
  .refine((id) => id <= 2_147_483_647);

/** Reads the fields that the schema has, and ignores others. @throws BadInput for the first field that is wrong */
export function readInput<T>(schema: z.ZodType<T>, given: unknown): T {
  const read = schema.safeParse(given ?? {});
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new BadInput(String(issue?.path[0] ?? 'input'), issue?.message ?? 'is wrong');
}
