import { describe, expect, it } from 'vitest';
import { statusTable } from '../../src/cli/status.ts';
import { wrapped } from '../../src/cli/terminal/output.ts';
import { slotText } from '../../src/cli/terminal/source-notes.ts';

type Shown = Parameters<typeof statusTable>[0][number];

const NOW = new Date('2026-11-22T09:30:00Z');

const run = (outcome: string, at: string, error: string | null = null) => ({
  startedAt: at,
  finishedAt: outcome === 'running' ? null : at,
  outcome,
  seen: 1,
  added: 0,
  changed: 0,
  retired: 0,
  rejected: 0,
  withdrawn: 0,
  error,
});

const good = run('unchanged', '2026-11-22T09:17:00Z');
const source = (more: Partial<Shown> = {}): Shown => ({
  id: 'hetzner',
  kind: 'catalogue',
  lastRun: good,
  lastEnded: good,
  verifiedAt: good.startedAt,
  registeredAt: good.startedAt,
  retiredAt: null,
  disabled: null,
  paused: null,
  regions: [],
  configured: true,
  counted: 'machines',
  known: 108,
  published: 84,
  quarantined: 0,
  held: 0,
  heldSince: null,
  failedRuns: 0,
  failingSince: null,
  problems: [],
  nextSlot: '2026-11-22T10:17:00Z',
  needed: true,
  missingRates: [],
  acknowledgedAlerts: [],
  ...more,
});

const failing = (text: string, since: string) =>
  ({ kind: 'failing', severity: 'warning', source: 'hetzner', text, since }) as const;

const lines = (text: string) => text.trimEnd().split('\n');

describe('the next slot', () => {
  it.each([
    ['2026-11-22T10:17:00Z', '10:17'],
    ['2026-11-22T23:59:00Z', '23:59'],
    ['2026-11-23T00:05:00Z', '23 Nov 00:05'],
    ['2027-01-01T06:00:00Z', '1 Jan 06:00'],
    ['2027-11-22T06:00:00Z', '2027-11-22'],
    ['2028-02-29T00:00:00Z', '2028-02-29'],
    [null, '-'],
  ])('%s is shown as %s', (slot, shown) => expect(slotText(slot, NOW)).toBe(shown));
});

describe('the table', () => {
  it('shows a source a row, in UTC, and nothing below it without problems', () => {
    expect(lines(statusTable([source()], NOW))).toEqual([
      'SOURCE   LAST RUN  OUTCOME    LAST GOOD  NEXT UTC  KNOWN  PUBLISHED',
      'hetzner  13 min    unchanged  13 min     10:17     108    84',
    ]);
  });

  it('fits 80 columns with any content, and shows ids whole', () => {
    const worst = {
      lastRun: run('interrupted', '2026-11-22T07:31:00Z'),
      verifiedAt: '2026-11-22T07:31:00Z',
      nextSlot: '2026-12-23T10:17:00Z',
      known: 1_000_000,
      published: 812_345,
    };
    const shown = lines(
      statusTable(
        [
          source({ ...worst, id: 'kubernetes-of-the-platform-in-production-a' }),
          source({ ...worst, id: 'kubernetes-of-the-platform-in-production-b' }),
        ],
        NOW,
      ),
    );
    for (const line of shown) expect(line.length).toBeLessThanOrEqual(80);
    const ids = shown.flatMap((line) => /^kubernetes\S+/.exec(line) ?? []);
    expect(ids).toEqual([
      'kubernetes-of-the-platform-in-production-a',
      'kubernetes-of-the-platform-in-production-b',
    ]);
    expect(lines(statusTable([source({ id: 'x'.repeat(40) })], NOW, 200))[1]).toContain('x'.repeat(40));
  });

  it('shows the error of the last run below it, wrapped', () => {
    const error = `GET https://api.hetzner.example/v1/server_types?page=1&per_page=50 answered 503 ${'again and '.repeat(9)}`;
    const failed = run('failed', '2026-11-22T09:17:00Z', error.trim());
    const shown = lines(
      statusTable(
        [
          source({
            lastRun: failed,
            lastEnded: failed,
            problems: [failing(error.trim(), failed.startedAt)],
          }),
        ],
        NOW,
      ),
    );
    expect(shown[2]).toBe('');
    expect(shown[3]).toMatch(/^hetzner: GET/);
    for (const line of shown) expect(line.length).toBeLessThanOrEqual(80);
    expect(shown.slice(3).join(' ').replaceAll(/\s+/g, ' ')).toBe(`hetzner: ${error.trim()}`);
  });

  it('keeps the last error while the source is retried', () => {
    const shown = statusTable(
      [
        source({
          lastRun: run('running', '2026-11-22T09:29:58Z'),
          lastEnded: run('failed', '2026-11-22T09:27:00Z', 'the upstream answered 503'),
          problems: [failing('the upstream answered 503', '2026-11-22T09:27:00Z')],
        }),
      ],
      NOW,
    );
    expect(shown).toContain('\nhetzner  2 s       running');
    expect(shown).toContain(
      '\nhetzner: runs again; its last run failed 3 min ago: the upstream answered 503\n',
    );
  });

  it('counts failures in a row since the first of them, not since the last', () => {
    const failed = run('failed', '2026-11-22T09:29:00Z', 'the upstream answered 503');
    const shown = statusTable(
      [
        source({
          lastRun: failed,
          lastEnded: failed,
          failedRuns: 5,
          problems: [failing('the upstream answered 503', '2026-11-22T04:30:00Z')],
        }),
      ],
      NOW,
      200,
    );
    expect(shown).toContain(
      '\nhetzner: the upstream answered 503 (the last 5 runs failed, the first 5 h ago)\n',
    );
  });

  it('states every other problem that the overview states', () => {
    const problems = [
      { kind: 'stale', severity: 'problem', text: 'its data is 4 h old; the limit is 3 h' },
      { kind: 'empty', severity: 'warning', text: 'it was read, but readers get no machines of it' },
    ] as const;
    const shown = source({ problems: problems.map((each) => ({ ...each, source: 'hetzner', since: null })) });
    expect(lines(statusTable([shown], NOW)).slice(3)).toEqual([
      'hetzner: its data is 4 h old; the limit is 3 h',
      'hetzner: it was read, but readers get no machines of it',
    ]);
  });

  it('shows a disabled source without a next slot, with its operator and the command that enables it', () => {
    const disabled = { at: '2026-11-22T07:30:00Z', by: 'ada@desk', reason: 'prices are wrong' };
    const shown = lines(statusTable([source({ disabled, nextSlot: null })], NOW));
    expect(shown[1]).toMatch(/^hetzner {2}13 min {4}unchanged {2}13 min {5}disabled /);
    expect(shown.slice(3).join(' ').replaceAll(/\s+/g, ' ')).toBe(
      'hetzner: disabled 2 h ago by ada@desk (prices are wrong): no worker reads it, and its published data stays; to read it again: fleetbook source enable hetzner',
    );
  });

  it('shows pending decisions', () => {
    const shown = statusTable(
      [
        source({
          held: 1,
          quarantined: 6,
          problems: [
            { kind: 'held', severity: 'warning', source: 'hetzner', text: 'x', since: null, batch: 1 },
          ],
        }),
        source({ id: 'b', quarantined: 1 }),
      ],
      NOW,
    );
    expect(lines(shown).slice(4)).toEqual([
      'hetzner: a batch is held for a decision; see `fleetbook hold show hetzner`',
      'hetzner: 6 rows are quarantined; see `fleetbook rejected hetzner`',
      'b: 1 row is quarantined; see `fleetbook rejected b`',
    ]);
  });
});

it('breaks lines at words', () => {
  expect(wrapped('one two three', 8)).toBe('one two\n  three\n');
  expect(wrapped('a https://example.org/long b', 8)).toBe('a\n  https://example.org/long\n  b\n');
});
