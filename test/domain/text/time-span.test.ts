import { expect, it } from 'vitest';
import { readAhead, readInstant, readPast } from '../../../src/domain/text/time-span.ts';

it.each([
  ['2026-01-31', '2026-01-31T00:00:00.000Z'],
  ['2024-02-29', '2024-02-29T00:00:00.000Z'],
  ['2026-01-31T12:00Z', '2026-01-31T12:00:00.000Z'],
  ['2026-01-31T23:30:00.123456789-01:30', '2026-02-01T01:00:00.123Z'],
  ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z'],
  ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
])('reads %s', (text, instant) => {
  expect(readInstant(text)?.toISOString()).toBe(instant);
});

it.each([
  'yesterday',
  '2026-01-31 12:00:00Z',
  '2026-01-31T12:00:00',
  '0000-01-01',
  '0000-12-31T23:59:59Z',
  '0001-01-01T00:00:00+14:00',
  '1969-12-31T23:59:59Z',
  '9999-12-31T23:59:59-00:01',
  '+010000-01-01T00:00:00Z',
  '2026-02-29',
  '2026-02-30T00:00:00Z',
  '2026-13-01',
  '2026-01-31T24:00:00Z',
  '2026-01-31T12:60:00Z',
])('refuses %s', (text) => {
  const now = new Date('2026-06-01T00:00:00Z');
  expect([readInstant(text), readPast(text, now), readAhead(text, now)]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
