/**
 * The named steps of a slot, of its sync and of the publication, in their order. A step is a span of the trace, or what
 * the worker sends to PostgreSQL or Redis: the worker dies as it begins, or before it is sent; or as it ends, or when the
 * answer is there and before anybody has read it.
 */
export type Step = (
  | { readonly span: string; readonly at: 'begin' | 'end' }
  | { readonly sends: RegExp; readonly at: 'before' | 'after' }
) & {
  /** Only after this was sent: what a publication does, the comparison at the worker's start does as well. */
  readonly once?: RegExp;
};

const COPIED = /copy "staged_offers" from stdin/;
const RUN_BEGUN = /insert into "sync_runs"/;

/** Name → how the statement or command is recognized in what is sent. */
const SYNC_SENT = {
  'slot claimed': /insert into "schedule_slots"/,
  'job added': /"sourceId":"large"/,
  'slot noted as enqueued': /update "schedule_slots" set "enqueued_at"/,
  'run begun': RUN_BEGUN,
  'staging table made': /create temporary table "staged_offers"/i,
  'rows copied': COPIED,
} as const;

/** After the rows were copied, and so in the run of the catalogue. */
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

const PUBLICATION_SENT = {
  'lineage told to the cache': /fb:lineage/,
  'region sent to the cache': /:published\r\n\$\d+\r\nregion:/,
  'machine index sent to the cache': /hset\r\n\$\d+\r\nfb:.*:machine-regions:/i,
  'list of providers sent to the cache': /:published\r\n\$\d+\r\nproviders/,
  'documents marked as published': /with free as \(/,
  'ages sent to the cache': /:verified\r\n/,
} as const;

/** Of a batch that a guard stops. */
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

/** Names of the steps of a batch that is stored and published, and of those that only one that is held comes to. */
export const STEPS_OF = { stored: namesOf(STORED), held: namesOf(HELD) } as const;

export const STEPS: Readonly<Record<string, Step>> = Object.fromEntries([...STORED, ...HELD]);

/** All of them, or every so many-th, so that about as many are left as FAULT_STEPS says. */
export function few(steps: readonly string[]): string[] {
  const most = Number(process.env.FAULT_STEPS ?? steps.length);
  return steps.filter((_, i) => i % Math.ceil(steps.length / most) === 0);
}
