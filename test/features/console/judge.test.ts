import { describe, expect, it } from 'vitest';
import type { BatchRecord } from '../../../src/db/held-batches.ts';
import type { HiddenReason } from '../../../src/db/quarantine.ts';
import type { RunStatus } from '../../../src/db/runs/status.ts';
import type { SourceStatus } from '../../../src/db/sources.ts';
import { type ConsoleSource, judgeSources } from '../../../src/features/console/routes/overview.ts';

const NOW = new Date('2026-05-04T12:00:00Z');
const hourly: ConsoleSource = {
  id: 'linode',
  kind: 'catalogue',
  schedule: '0 * * * *',
  maxAge: 3 * 3600,
};

const run = (outcome: string, error: string | null = null): RunStatus => ({
  startedAt: '2026-05-04T11:00:00Z',
  finishedAt: '2026-05-04T11:00:09Z',
  outcome,
  seen: 10,
  added: 0,
  changed: 0,
  retired: 0,
  rejected: 0,
  withdrawn: 0,
  error,
});

/** A source without problems, except for the given ones. */
function linode(other: Partial<SourceStatus> = {}): SourceStatus {
  return {
    id: 'linode',
    kind: 'catalogue',
    lastRun: run('unchanged'),
    lastEnded: run('unchanged'),
    verifiedAt: '2026-05-04T11:00:00Z',
    registeredAt: '2026-01-01T00:00:00Z',
    retiredAt: null,
    disabled: null,
    paused: null,
    regions: [{ code: 'de', verifiedAt: '2026-05-04T11:00:00Z', unreadSince: null, reason: null }],
    counted: 'machines',
    known: 10,
    published: 9,
    quarantined: 0,
    held: 0,
    heldSince: null,
    failedRuns: 0,
    failingSince: null,
    ...other,
  };
}

const held: BatchRecord = {
  id: 7,
  sourceId: 'linode',
  createdAt: '2026-05-04T11:00:00Z',
  heldSince: '2026-05-04T09:00:00Z',
  readAt: '2026-05-04T11:00:00Z',
  pattern: 'all 3 prices × 100: a unit?',
  broken: [{ guard: 'priceRatio', found: 100, limit: 10, detail: 'prices rise by 100' }],
  items: 10,
  worst: { rows: [], total: 0 },
  status: 'pending',
  decidedAt: null,
  decidedBy: null,
  reason: null,
  reversible: false,
  undoneAt: null,
  undoneBy: null,
  undoneReason: null,
};

const judged = (
  status: SourceStatus[],
  configured = [hourly],
  pending: BatchRecord[] = [],
  hidden: HiddenReason[] = [],
  areRatesNeeded = true,
) => judgeSources(configured, { status, strips: [], pending, hidden, alerts: [], areRatesNeeded }, NOW);

describe('the overview’s view of a source', () => {
  it('has no problem without a fault', () => {
    const { problems, sources } = judged([linode()]);
    expect(problems).toEqual([]);
    expect(sources).toMatchObject([
      {
        id: 'linode',
        state: 'ok',
        ageSeconds: 3600,
        objectiveSeconds: 10_800,
        nextSlot: '2026-05-04T13:00:00Z',
      },
    ]);
  });

  const stale = { verifiedAt: '2026-05-04T08:59:59Z' };
  const unread = {
    code: 'us',
    verifiedAt: null,
    unreadSince: '2026-05-04T10:00:00Z',
    reason: 'status 500',
  };
  it.each<[what: string, other: Partial<SourceStatus>, state: string, text: RegExp]>([
    ['is older than three intervals', stale, 'stale', /is 3 h old; the limit is 3 h/],
    ['was never read', { verifiedAt: null }, 'never-read', /no run has read it successfully yet/],
    ['has no rows', { published: 0 }, 'empty', /readers get no machines of it/],
    ['failed', { lastEnded: run('failed', 'status 401') }, 'failing', /^status 401$/],
    ['was interrupted', { lastEnded: run('interrupted') }, 'failing', /ended as interrupted/],
    [
      'has an unreadable region',
      { regions: [...linode().regions, unread] },
      'unread-regions',
      /^1 of 2 regions could not be read \(us\): status 500$/,
    ],
  ])('has a problem if it %s', (_, other, state, text) => {
    const { problems, sources } = judged([linode(other)]);
    expect(sources.map((each) => each.state)).toEqual([state]);
    expect(problems).toMatchObject([{ kind: state, source: 'linode', text: expect.stringMatching(text) }]);
  });

  it('fails since its first failure in a row, and more than two are severe', () => {
    const failed = (failedRuns: number) =>
      judged([
        linode({
          lastEnded: run('failed', 'status 401'),
          failedRuns,
          failingSince: '2026-05-04T09:30:00Z',
        }),
      ]);
    expect(failed(2)).toMatchObject({
      problems: [{ kind: 'failing', severity: 'warning', since: '2026-05-04T09:30:00Z' }],
      sources: [{ severity: 'warning' }],
    });
    expect(failed(3)).toMatchObject({
      problems: [{ severity: 'problem' }],
      sources: [{ severity: 'problem' }],
    });
  });

  it('has a warning while it is paused', () => {
    const paused = { until: '2026-05-04T12:30:00Z', reason: 'two runs ended their worker' };
    expect(judged([linode({ paused })])).toMatchObject({
      problems: [{ kind: 'paused', severity: 'warning', text: expect.stringContaining(paused.until) }],
      sources: [{ state: 'paused' }],
    });
  });

  it('has a severe problem if a region is too old, also if the others were read', () => {
    const old = { code: 'us', verifiedAt: '2026-05-04T08:00:00Z', unreadSince: null, reason: null };
    expect(judged([linode({ regions: [...linode().regions, old] })])).toMatchObject({
      problems: [
        {
          kind: 'stale-regions',
          severity: 'problem',
          text: '1 of 2 regions were not read for 3 h (us)',
          since: old.verifiedAt,
        },
      ],
      sources: [{ state: 'stale-regions' }],
    });
  });

  it('waits for its first run without a severe problem, for as long as its data may be old', () => {
    const waiting = (registeredAt: string) =>
      judged([linode({ verifiedAt: null, lastRun: null, lastEnded: null, registeredAt })]).problems;
    expect(waiting('2026-05-04T09:00:00Z')).toMatchObject([{ kind: 'never-read', severity: 'warning' }]);
    expect(waiting('2026-05-04T08:59:59Z')).toMatchObject([{ kind: 'never-read', severity: 'problem' }]);
  });

  it('is not stale at the limit of its age', () => {
    expect(judged([linode({ verifiedAt: '2026-05-04T09:00:00Z' })]).problems).toEqual([]);
  });

  it('names all problems, the held batch first', () => {
    const status = linode({ verifiedAt: null, published: 0, lastEnded: run('failed', 'status 401') });
    const { problems, sources } = judged([status], [hourly], [held]);
    expect(problems.map(({ kind, since, batch }) => [kind, since, batch])).toEqual([
      ['held', '2026-05-04T09:00:00Z', 7],
      ['failing', '2026-05-04T11:00:09Z', undefined],
      ['never-read', '2026-01-01T00:00:00Z', undefined],
    ]);
    expect(sources[0]?.state).toBe('held');
  });

  it('is neither an alarm nor good during the first run', () => {
    const { sources } = judged([linode({ verifiedAt: null, lastRun: run('running'), lastEnded: null })]);
    expect(sources[0]?.state).toBe('running');
  });

  it('names a source that is not configured while its data is published', () => {
    expect(judged([linode()], []).problems).toMatchObject([
      { kind: 'not-configured', text: expect.stringContaining('fleetbook source retire linode') },
    ]);
    const retired = judged([linode({ published: 0, retiredAt: '2026-05-01T00:00:00Z' })], []);
    expect(retired).toMatchObject({ problems: [], sources: [{ state: 'retired', objectiveSeconds: null }] });
  });

  it('calls a disabled source neither fresh nor a problem', () => {
    const disabled = { at: '2026-05-01T00:00:00Z', by: 'ada', reason: null };
    const found = judged([linode({ disabled, verifiedAt: '2026-05-01T00:00:00Z' })]);
    expect(found).toMatchObject({ problems: [], sources: [{ state: 'disabled', nextSlot: null }] });
  });

  it.each<[what: string, other: Partial<SourceStatus>, hidden: HiddenReason[], text: string]>([
    [
      'excluded machines',
      { known: 10, published: 0 },
      [
        { id: 'linode', of: 'excluded', reason: 'no_exchange_rate', count: 9 },
        { id: 'linode', of: 'excluded', reason: 'discontinued', count: 1 },
        { id: 'other', of: 'excluded', reason: 'licensed', count: 5 },
      ],
      'it was read, but readers get no machines of it: all 10 machines are excluded (9 no_exchange_rate: its price has no exchange rate; give one in CATALOGUE_RATES, 1 discontinued: its provider no longer sells it)',
    ],
    [
      'unusable rows',
      { known: 0, published: 0, quarantined: 4 },
      [{ id: 'linode', of: 'quarantined', reason: 'cpu is missing', count: 4 }],
      'it was read, but readers get no machines of it: 4 rows are rejected (4 cpu is missing); see fleetbook rejected linode',
    ],
    [
      'an empty upstream',
      { known: 0, published: 0 },
      [],
      'it was read, but readers get no machines of it: its upstream listed none; check that its credentials and options may list machines, or disable it: fleetbook source disable linode',
    ],
  ])('states why a source is empty, and the remedy: %s', (_, other, hidden, text) => {
    expect(judged([linode(other)], [hourly], [], hidden).problems).toMatchObject([{ kind: 'empty', text }]);
  });

  it('has no problem if it has plans of databases and no machines', () => {
    const plans = linode({ counted: 'database plans', known: 10, published: 9 });
    expect(judged([plans])).toMatchObject({ problems: [], sources: [{ state: 'ok' }] });
    const unpriced = linode({ counted: 'database plans', known: 10, published: 0 });
    expect(judged([unpriced]).problems).toMatchObject([
      { kind: 'empty', text: expect.stringContaining('no database plans of it: no exchange rate is known') },
    ]);
    expect(judged([plans], []).problems).toMatchObject([
      { kind: 'not-configured', text: expect.stringContaining('9 database plans are still published') },
    ]);
  });

  it('has no failure of exchange rates that no price needs', () => {
    const ecb = { ...hourly, id: 'exchange-rates', kind: 'rates', maxAge: 3600 } as const;
    const failing = linode({
      id: 'exchange-rates',
      kind: 'rates',
      verifiedAt: null,
      lastEnded: run('failed', 'status 503'),
    });
    const judgedWith = (areNeeded: boolean) => judged([failing, linode()], [hourly, ecb], [], [], areNeeded);
    expect(judgedWith(true).problems.map(({ kind }) => kind)).toEqual(['failing', 'never-read']);
    expect(judgedWith(true).sources[0]?.state).toBe('failing');
    expect(judgedWith(false)).toMatchObject({ problems: [], sources: [{ state: 'not-needed' }, {}] });
  });

  it('names a configured source that is not in the database yet', () => {
    expect(judged([]).problems).toMatchObject([{ kind: 'never-read', source: 'linode', since: null }]);
  });
});
