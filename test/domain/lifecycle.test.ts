import { describe, expect, it } from 'vitest';
import { ENGINES, engineNamed, isEngine } from '../../src/domain/engine.ts';
import {
  byEngine,
  type Cycle,
  compareVersions,
  isEnding,
  type LifecycleEngine,
  lifecycleOf,
  PRODUCTS,
  versionParts,
} from '../../src/domain/lifecycle.ts';

const TODAY = '2026-08-22';

const cycle = (engine: LifecycleEngine, name: string, fields: Partial<Cycle> = {}): Cycle => ({
  engine,
  name,
  releasedOn: null,
  activeUntil: null,
  endOfLife: '2028-01-01',
  hasEnded: false,
  extendedUntil: null,
  latest: null,
  ...fields,
});

const CYCLES = byEngine([
  ...['9.5', '9.6', '10', '16', '17'].map((name) => cycle('postgresql', name)),
  ...['5.7', '8.0', '8.4', '9.7'].map((name) => cycle('mysql', name)),
  ...['8.0', '8.1', '8.8', '8.10'].map((name) => cycle('redis', name)),
  ...['1', '2', '3'].map((name) => cycle('opensearch', name)),
  ...['24.8', '25.8', '26.3'].map((name) => cycle('clickhouse', name)),
  ...['3.8', '4.0', '4.3'].map((name) => cycle('kafka', name)),
  ...['7', '8', '9.4'].map((name) => cycle('elasticsearch', name)),
]);

const of = (engine: string | null, version: string | null, endOfLife: string | null = null) =>
  lifecycleOf({ engine, version, endOfLife }, CYCLES, TODAY);

describe('the cycle of a version', () => {
  it.each([
    ['postgresql', '16.4', '16'],
    ['postgresql', '17', '17'],
    ['postgresql', '9.6.24', '9.6'],
    ['postgresql', 'v10.23', '10'],
    ['mysql', '8.4.8', '8.4'],
    ['mysql', '8.0', '8.0'],
    ['redis', '8.10.1', '8.10'],
    ['redis', '8.1.3', '8.1'],
    ['opensearch', '2.19', '2'],
    ['clickhouse', '24.8.14.10459', '24.8'],
    ['kafka', '4.3.1', '4.3'],
    ['elasticsearch', '7.17.29', '7'],
    ['elasticsearch', '9.4.1', '9.4'],
    ['postgresql', '16-alpine', '16'],
  ])('of %s %s is %s', (engine, version, name) => {
    expect(of(engine, version)).toMatchObject({
      state: 'supported',
      cycle: { engine, name },
      statedBy: 'lifecycles',
      reason: null,
    });
  });

  it.each([
    [null, null, 'no_engine'],
    [null, '16', 'no_engine'],
    ['postgresql', null, 'no_version'],
    ['dragonfly', '1.2', 'engine_not_covered'],
    ['oracle-db', '23', 'engine_not_covered'],
    ['constructor', '1', 'engine_not_covered'],
    ['valkey', '8.0', 'no_lifecycles'],
    ['mysql', '8', 'version_too_short'],
    ['clickhouse', 'v25', 'version_too_short'],
    ['postgresql', '9', 'version_too_short'],
    ['postgresql', '8.4', 'no_cycle'],
    ['postgresql', '18beta1', 'no_cycle'],
    ['postgresql', 'latest', 'no_cycle'],
    ['redis', '8.11', 'no_cycle'],
    ['redis', '8.100', 'no_cycle'],
  ])('of %s %s is unknown, with the reason %s', (engine, version, reason) => {
    expect(of(engine, version)).toEqual({
      state: 'unknown',
      endOfLife: null,
      daysLeft: null,
      statedBy: null,
      cycle: null,
      reason,
    });
  });
});

describe('the end of a version', () => {
  const ending = (endOfLife: string | null, hasEnded = false) =>
    lifecycleOf(
      { engine: 'redis', version: '7.2.5', endOfLife: null },
      byEngine([cycle('redis', '7.2', { endOfLife, hasEnded })]),
      TODAY,
    );

  it.each([
    ['2026-08-23', 'supported', 1],
    ['2026-08-22', 'supported', 0],
    ['2026-08-21', 'ended', -1],
    ['2025-08-22', 'ended', -365],
    ['2028-02-29', 'supported', 556],
  ])('on %s makes it %s, with %d days left', (day, state, daysLeft) => {
    expect(ending(day)).toMatchObject({ state, daysLeft, endOfLife: day });
    // The publisher computed its mark on another day.
    expect(ending(day, true)).toMatchObject({ state, daysLeft });
  });

  it('without a date is announced by nobody, or has passed on an unknown day', () => {
    expect(ending(null)).toMatchObject({ state: 'supported', daysLeft: null, reason: 'not_announced' });
    expect(ending(null, true)).toMatchObject({ state: 'ended', endOfLife: null, reason: null });
  });

  it('by the provider has priority, earlier or later, and also without a cycle', () => {
    for (const day of ['2026-01-01', '2031-01-01'])
      expect(of('postgresql', '16.4', day)).toMatchObject({
        endOfLife: day,
        statedBy: 'provider',
        cycle: { name: '16', endOfLife: '2028-01-01' },
        reason: null,
      });
    expect(of('mysql', '8', '2026-04-30')).toMatchObject({
      state: 'ended',
      statedBy: 'provider',
      cycle: null,
    });
  });

  it('is soon within the days, with the last one', () => {
    const left = (days: number) => ({ ...ending('2026-09-01'), daysLeft: days });
    expect([9, 10, 11].map((days) => isEnding(left(days), 10))).toEqual([true, true, false]);
    expect(isEnding(ending(null, true), 0)).toBe(true);
    expect(isEnding(ending(null), 3650)).toBe(false);
    expect(isEnding(of('mysql', '8'), 3650)).toBe(false);
  });
});

describe('versions', () => {
  it('are in the order of their numbers', () => {
    const versions = ['8.10', '8.9', '8', '10', '8.9.1', 'latest', '9.6', 'v25'];
    expect(versions.toSorted(compareVersions)).toEqual([
      '8',
      '8.9',
      '8.9.1',
      '8.10',
      '9.6',
      '10',
      'v25',
      'latest',
    ]);
  });

  it('have numbers at their beginning, and of a bounded length', () => {
    expect(versionParts('8.4.8-1')).toEqual([8, 4, 8]);
    for (const text of ['', 'v', '.8', '8.', '8..4', 'x8', '8x', '1'.repeat(10), `${'1.'.repeat(11)}1`])
      expect(versionParts(text)).toBeUndefined();
  });
});

describe('engines', () => {
  it.each([
    ['pg', 'postgresql'],
    ['PostgreSQL', 'postgresql'],
    ['advanced_pg', 'postgresql'],
    ['advanced_mysql', 'mysql'],
    ['MySQL', 'mysql'],
    ['Kafka', 'kafka'],
    ['FoundationDB', 'FoundationDB'],
    ['constructor', 'constructor'],
  ])('%s is %s', (stated, engine) => {
    expect(engineNamed(stated)).toBe(engine);
  });

  it('with release cycles are of the vocabulary', () => {
    expect(Object.keys(PRODUCTS).every(isEngine)).toBe(true);
    expect(new Set(ENGINES).size).toBe(ENGINES.length);
  });
});
