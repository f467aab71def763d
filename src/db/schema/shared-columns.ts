import { CPU_KINDS } from '../../domain/machine-facts.ts';
import { customType, integer, numeric, type PgColumn, text, timestamp } from '../connection/drizzle.ts';

export const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });
/** Read as text: a JavaScript Date would drop the microseconds. */
export const instant = (name: string) =>
  timestamp(name, { withTimezone: true, precision: 6, mode: 'string' });
/** Exactly as the source states it. */
export const amount = (name: string) => numeric(name);
/** Per minute, in the published currency. */
export const minutePrice = (name: string) => numeric(name, { precision: 38, scale: 18 });
export const PERIODS = ['minute', 'hour', 'month'] as const;
export const statedPrice = {
  sourceAmount: amount('source_amount').notNull(),
  sourcePer: text('source_per', { enum: PERIODS }).notNull(),
  sourceCurrency: text('source_currency').notNull(),
};
export const reference = (name: string, to: () => PgColumn) => integer(name).notNull().references(to);
/** See domain/machine-facts.ts; null is unknown. */
export const factColumns = {
  architecture: text('architecture'),
  generation: text('generation'),
  cpuKind: text('cpu_kind', { enum: CPU_KINDS }),
  localDisk: numeric('local_disk'),
  network: integer('network'),
  includedTraffic: numeric('included_traffic'),
  includedIpv4: integer('included_ipv4'),
  orderableUntil: instant('orderable_until'),
  retiresAt: instant('retires_at'),
};
