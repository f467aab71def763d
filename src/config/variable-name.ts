import { z } from 'zod';

export const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
  error: 'must be the name of an environment variable',
});
