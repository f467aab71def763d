import { describe, expect, it } from 'vitest';
import { axisTimes } from '../../../packages/console/src/lib/format.ts';

const seconds = (...instants: string[]) => instants.map((each) => Date.parse(each) / 1000);

describe('the labels of a time axis', () => {
  it('are 24-hour UTC times, with the date at the start of a day', () => {
    expect(
      axisTimes(seconds('2026-01-31T11:00:00Z', '2026-01-31T17:00:00Z', '2026-02-01T00:00:00Z')),
    ).toEqual(['11:00\n2026-01-31', '17:00', '00:00\n2026-02-01']);
  });

  it('are dates if they are a day apart', () => {
    expect(axisTimes(seconds('2026-01-31T00:00:00Z', '2026-02-01T00:00:00Z'))).toEqual([
      '2026-01-31',
      '2026-02-01',
    ]);
  });

  it('are empty without times', () => {
    expect(axisTimes([])).toEqual([]);
  });
});
