import { CPU_KINDS } from '../../domain/machine-facts.ts';
import {
  bigint,
  customType,
  integer,
  jsonb,
  numeric,
  type PgColumn,
  sql,
  text,
  timestamp,
} from '../connection/drizzle.ts';

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
/** Columns of a message to a webhook. A webhook receives its messages in the order of their ids. */
export const messageColumns = {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  /** The receiver's id of the message. A message that an operator sends again keeps it. */
  messageId: text('message_id').notNull(),
  body: jsonb('body').notNull(),
  createdAt: instant('created_at').notNull().defaultNow(),
  attempts: integer('attempts').notNull().default(0),
  nextAttemptAt: instant('next_attempt_at').notNull().defaultNow(),
  deliveredAt: instant('delivered_at'),
  gaveUpAt: instant('gave_up_at'),
  lastError: text('last_error'),
};
export const IS_WAITING = sql`delivered_at is null and gave_up_at is null`;
