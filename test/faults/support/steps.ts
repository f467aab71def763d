/**
 * The named steps of a slot, its sync and the publication, in order. A step is a span of the trace, or a message to
 * PostgreSQL or Redis. The worker dies before the step, or after it: then the answer has arrived and is not read yet.
 */
export type Step = (
  | { readonly span: string; readonly at: 'begin' | 'end' }
  | { readonly sends: RegExp; readonly at: 'before' | 'after' }
) & {
  /** The step counts only after this message: the comparison at the worker's start has the same steps as a publication. */
  readonly once?: RegExp;
};

const COPIED = /copy "staged_offers" from stdin/;
const RUN_BEGUN = /insert into "sync_runs"/;

/** Name → the pattern of the statement or command. */
const SYNC_SENT = {
  'slot claimed': /insert into "schedule_slots"/,
  'job added': /"sourceId":"large"/,
  'slot noted as enqueued': /update "schedule_slots" set "enqueued_at"/,
  'run begun': RUN_BEGUN,
  'staging table made': /create temporary table "staged_offers"/i,
  'rows copied': COPIED,
} as const;

/** Steps after the copy of the rows, and so in the run of the catalogue. */
const STORE_SENT = {
  'fence checked': /for update/,
  'provider locked': /for no key update/,
  'machines written': /insert into "machines"/,
  'prices written': /insert into "machine_prices"/,
  'quarantine written': /"quarantined_rows"/,
  'run finished': /update "sync_runs" set "finished_at"/,
  'slot done with': /update "schedule_slots" set "due_at"/,
  'job finished': /sync:completed/,
} as const;

/** Of a document: its name behind the empty expiry of a publication. */
const PUBLICATION_SENT = {
  'lineage told to the cache': /fb:lineage/,
  'region sent to the cache': /\$0\r\n\r\n\$\d+\r\nregion:/,
  'regions of machines sent to the cache': /hset\r\n\$\d+\r\nfb:.*:machine-regions:/i,
  'list of providers sent to the cache': /\$0\r\n\r\n\$\d+\r\nproviders/,
  'documents marked as published': /with free as \(/,
  'ages sent to the cache': /:stamps\r\n/,
} as const;

/** Steps of a held batch. */
const HELD_SENT = {
  'held batch written': /insert into "held_batches"/,
  'held items written': /insert into "held_items"/,
} as const;

type Steps = readonly (readonly [name: string, Step])[];

const sent = (all: Readonly<Record<string, RegExp>>, once?: RegExp): Steps =>
  Object.entries(all).flatMap(([name, sends]) =>
    (['before', 'after'] as const).map(
      (at) => [`${at}: ${name}`, { sends, at, ...(once && { once }) }] as const,
    ),
  );
const spans = (names: readonly string[], once?: RegExp): Steps =>
  names.flatMap((span) =>
    (['begin', 'end'] as const).map(
      (at) => [`as "${span}" ${at}s`, { span, at, ...(once && { once }) }] as const,
    ),
  );

const STORED: Steps = [
  ...sent(SYNC_SENT),
  ...sent(STORE_SENT, COPIED),
  ...spans(['run', 'sync read']),
  ...spans(['sync compare', 'sync write', 'sync commit'], COPIED),
  ...sent(PUBLICATION_SENT, RUN_BEGUN),
  ...spans(['publish'], RUN_BEGUN),
];
const HELD: Steps = [...sent(HELD_SENT), ...spans(['sync hold'])];
const namesOf = (steps: Steps): string[] => steps.map(([name]) => name);

/** Names of the steps of a stored and published batch, and of a held batch only. */
export const STEPS_OF = { stored: namesOf(STORED), held: namesOf(HELD) } as const;

export const STEPS: Readonly<Record<string, Step>> = Object.fromEntries([...STORED, ...HELD]);

/** Returns all steps, or an even selection of about FAULT_STEPS. */
export function few(steps: readonly string[]): string[] {
  const most = Number(process.env.FAULT_STEPS ?? steps.length);
  return steps.filter((_, i) => i % Math.ceil(steps.length / most) === 0);
}
