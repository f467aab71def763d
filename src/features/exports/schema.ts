/** The list of files, as a zod schema. */
import { z } from 'zod';
import { named } from '../../http/openapi-schemas.ts';
import { count, instant, text } from '../../http/schemas.ts';

/** A file of the whole catalogue, as the list of them shows it. */
export const exportSchema = named(
  'Export',
  z.strictObject({
    file: text('Its name, which `/v1/exports/{file}` asks for'),
    version: text('Names the state of the catalogue; the same for all files'),
    bytes: count('Of the file as it is, not compressed'),
    rows: count('Machines or prices in it'),
    created_at: instant('When the catalogue was in this state'),
    etag: text('Entity tag of the file as it is, not compressed'),
  }),
);
export type ListedExport = z.output<typeof exportSchema>;
