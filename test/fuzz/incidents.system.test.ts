/**
 * Real incidents of upstreams over hours of slots: nothing changes for readers, and the next good slot repairs it.
 */
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { nextSlot } from '../../src/domain/schedule.ts';
import { applyDefaults } from '../../src/sources/cluster-defaults.ts';
import { ClusterRules } from '../../src/sources/cluster-rules.ts';
import { type CatalogueItem, type ClusterItem, SourceError } from '../../src/sources/source.ts';
import type { Slot } from '../../src/sync/runs/slots.ts';
import { nextAttempt } from '../../workers/retry.ts';
import { Scheduler } from '../../workers/schedule.ts';
import { IS_LONG } from '../support/random.ts';
import { openScene, type Scene } from '../sync/scene.ts';
import { FAULTS, type Incident, WRONG_HETZNER, WRONG_LISTS } from './support/incidents.ts';
import { type FuzzSource, fuzzSources, type Otherwise } from './support/sources.ts';

const CRON = '17 * * * *';
const HOUR_MS = 3_600_000;
/** Slots of an incident, before a good one. */
const TROUBLED_SLOTS = 2;
/** Checked attempts of one slot; the tests of retries check the later pauses. */
const MOST_ATTEMPTS = 2;
const RATES = { EUR: '1.08', GBP: '1.25', CHF: '1.1' };
/** Some fixtures have only a dozen rows, a few of them intentionally unusable. */
const REJECTED_SHARE = 0.6;

/**
 * Catalogues and control planes with different formats: pages by number, by offset and by link, maps, single objects. The rules are
 * the same for all, so a change runs half of them.
 */
const SOURCES = IS_LONG
  ? ['hetzner', 'scaleway', 'upcloud', 'clusters-digitalocean', 'clusters-ovh', 'clusters-upcloud']
  : ['hetzner', 'upcloud', 'clusters-ovh'];
const sources = (await fuzzSources()).filter(({ id }) => SOURCES.includes(id));

/** Cluster fields that the fixtures' control planes lack. */
const RULES = ClusterRules.parse({
  organization: 'acme',
  defaults: {
    provider: 'Acme Cloud',
    region: { code: 'somewhere' },
    machine: { cpu: 2, ram: 4, ram_unit: 'Binary' },
  },
  diskTypes: {
    '*': { name: 'disk', price: { amount: '0.1', per: 'month', currency: 'USD' }, unit: 'Decimal' },
  },
});

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(async () => {
  await scene.reset();
  await scene.organization('acme');
});

/** All data that readers get. */
async function published(): Promise<unknown> {
  const machines = await scene.sql`
    select r.code, m.name, m.cpu, m.ram::text, m.price::text
    from machines m join regions r on r.id = m.region_id
    where m.excluded_reason is null and m.retired_at is null order by 1, 2`;
  const clusters = await scene.sql`
    select c.*, array(select d::text from disks d where d.cluster_id = c.id order by 1) as disks
    from clusters c where c.retired_at is null order by c.source_key`;
  // Readers do not see how often a cluster was missed.
  return [...machines, ...clusters.map(({ missed_runs: _, ...fields }) => fields)];
}

/** One source in a worker with a test clock. */
class SimulatedHours implements AsyncDisposable {
  now = new Date('2026-03-01T00:00:00Z');
  readonly #source: FuzzSource;
  readonly #queue: Slot[] = [];
  readonly #scheduler: Scheduler;

  constructor(source: FuzzSource) {
    this.#source = source;
    this.#scheduler = new Scheduler({
      db: scene.store.db,
      schedules: [{ name: source.id, cron: CRON }],
      logger: pino({ level: 'silent' }),
      now: () => this.now,
      databaseNow: async () => this.now,
      enqueue: async (slot) => {
        this.#queue.push(slot);
      },
    });
  }

  /**
   * Advances to the next slot and runs its job as a worker does: a failed attempt is repeated after a pause, until
   * the next slot begins.
   * @returns the result of each attempt
   */
  async slot(trouble?: Otherwise): Promise<string[]> {
    this.now = new Date(nextSlot(CRON, this.now));
    // As from two workers.
    await Promise.all([this.#scheduler.claimDue(), this.#scheduler.claimDue()]);
    const [slot, ...others] = this.#queue.splice(0);
    expect(others).toEqual([]);
    if (slot === undefined) return expect.unreachable('no slot was due');
    const outcomes: string[] = [];
    for (;;) {
      const outcome = await this.#attempt(slot, trouble).catch((error: unknown) => {
        if (error instanceof SourceError && error.message !== '') return error;
        throw error;
      });
      if (!(outcome instanceof SourceError)) return [...outcomes, outcome];
      outcomes.push(outcome.kind);
      const { kind, retryAfterMs } = outcome;
      const next = nextAttempt(
        {
          kind,
          failures: outcomes.length,
          tookMs: 0,
          retryAfterMs,
          now: this.now,
          nextSlot: new Date(nextSlot(CRON, this.now)),
          intervalMs: HOUR_MS,
        },
        () => 0.5,
      );
      if (next.at === undefined || outcomes.length === MOST_ATTEMPTS) return outcomes;
      expect(next.at.getTime() - this.now.getTime()).toBeGreaterThanOrEqual(retryAfterMs ?? 0);
      this.now = next.at;
    }
  }

  async #attempt(slot: Slot, trouble: Otherwise | undefined): Promise<string> {
    const { id, catalogue } = this.#source;
    const items = this.#source.read(trouble);
    const limits = trouble === undefined ? { rejectedShare: REJECTED_SHARE } : {};
    const settings = { source: id, slot: slot.slot, now: () => this.now, limits };
    if (catalogue === undefined) {
      const clusters = applyDefaults(items as AsyncIterable<ClusterItem>, RULES);
      return (await scene.clusters(clusters, settings)).outcome;
    }
    const provider = catalogue.provider ?? { id: 900, name: 'Acme Cloud' };
    const rows = items as AsyncIterable<CatalogueItem>;
    return (await scene.catalogue(rows, { ...settings, provider, rates: RATES })).outcome;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scheduler[Symbol.asyncDispose]();
  }
}

/**
 * Runs each incident, with a good slot after each.
 * @returns the number of claimed slots, and of those with a run
 */
async function livesThrough(source: FuzzSource, incidents: readonly Incident[]) {
  await using hours = new SimulatedHours(source);
  expect(await hours.slot()).toEqual(['changed']);
  const good = await published();
  expect(good).not.toEqual([]);
  expect(await hours.slot()).toEqual(['unchanged']);
  for (const { what, trouble, outcomes } of incidents) {
    for (let slot = 0; slot < TROUBLED_SLOTS; slot++) {
      const found = await hours.slot(trouble());
      for (const outcome of found) expect(outcomes, what).toContain(outcome);
      expect(await published(), what).toEqual(good);
    }
    expect(await hours.slot(), `the slot after: ${what}`).toEqual(['unchanged']);
    expect(await published(), `the slot after: ${what}`).toEqual(good);
    const pending = await scene.sql`select from held_batches where status = 'pending'`;
    expect(pending, `the slot after: ${what}`).toHaveLength(0);
  }
  const [counted] = await scene.sql<{ slots: number; run: number }[]>`
    select count(distinct s.slot)::integer as slots, count(distinct r.slot)::integer as run
    from schedule_slots s left join sync_runs r on r.source_id = s.schedule and r.slot = s.slot`;
  return counted;
}

/** Claims and runs each past slot once. */
function everySlot(incidents: readonly Incident[]) {
  const slots = 2 + incidents.length * (TROUBLED_SLOTS + 1);
  return { slots, run: slots };
}

describe.for(sources)('$id', (source) => {
  const incidents = source.catalogue === undefined ? FAULTS : [...FAULTS, ...WRONG_LISTS];

  it('changes nothing for readers while its upstream fails or lists wrong data, and recovers alone', async () => {
    expect(await livesThrough(source, incidents)).toEqual(everySlot(incidents));
  });
});

it('hetzner changes nothing for readers while units and prices are wrong', async () => {
  const hetzner = sources.find(({ id }) => id === 'hetzner');
  if (hetzner === undefined) return expect.unreachable('hetzner has an adapter');
  expect(await livesThrough(hetzner, WRONG_HETZNER)).toEqual(everySlot(WRONG_HETZNER));
});

it('each source to test has an adapter', () => {
  expect(sources.map(({ id }) => id).toSorted()).toEqual(SOURCES.toSorted());
});
