import { z } from 'zod';

/** The name of an environment variable. */
export const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
  error: 'must be the name of an environment variable',
});
