/** Kinds of columns that several tables have. */
import { customType, numeric, timestamp } from 'drizzle-orm/pg-core';

export const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });
/** Read as text: a JavaScript Date would drop the microseconds. */
export const instant = (name: string) =>
  timestamp(name, { withTimezone: true, precision: 6, mode: 'string' });
/** Exactly what a source said. */
export const amount = (name: string) => numeric(name);
/** Per minute, in the published currency. */
export const minutePrice = (name: string) => numeric(name, { precision: 38, scale: 18 });
