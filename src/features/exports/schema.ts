import { z } from 'zod';
import { named } from '../../http/openapi-schemas.ts';
import { count, instant, text } from '../../http/schemas.ts';

export const exportSchema = named(
  'Export',
  z.strictObject({
    file: text('Its name, for `/v1/exports/{file}`'),
    version: text('Names the state of the catalogue; the same for all files'),
    bytes: count('Bytes of the file before compression'),
    rows: count('Number of machines or prices'),
    created_at: instant('Time of this state of the catalogue'),
    etag: text('Entity tag of the file before compression'),
  }),
);
export type ListedExport = z.output<typeof exportSchema>;
