import { describe, expect, it } from 'vitest';
import { type Bar, median, shown, table, unsteady, verdict } from '../../bench/support/bar.ts';

describe('the verdict on a bar', () => {
  it.each<[Bar, string]>([
    [{ what: 'at its limit', found: 3, unit: '×', limit: 3 }, 'PASS'],
    [{ what: 'above its limit', found: 3.01, unit: '×', limit: 3 }, 'MISSED'],
    [{ what: 'at what is the least', found: 0.9, unit: '×', limit: 0.9, bound: 'least' }, 'PASS'],
    [{ what: 'below the least', found: 0.89, unit: '×', limit: 0.9, bound: 'least' }, 'MISSED'],
    [{ what: 'exactly so', found: 20, unit: '', limit: 20, bound: 'exactly' }, 'PASS'],
    [{ what: 'less than exactly', found: 19, unit: '', limit: 20, bound: 'exactly' }, 'MISSED'],
    [{ what: 'a figure that is none', found: Number.NaN, unit: '×', limit: 3 }, 'MISSED'],
    [{ what: 'no figure', unit: '×', limit: 3 }, 'not measured'],
    [{ what: 'only told', found: 7, unit: 's' }, ''],
    [{ what: 'a busy machine', found: 7, unit: '×', limit: 3, unsure: 'its peer differs' }, 'not measurable'],
  ])('%o is %j', (bar, expected) => {
    expect(verdict(bar)).toBe(expected);
  });
});

it('a table has a line for each bar, in aligned columns, with goal and verdict', () => {
  const bars: Bar[] = [
    { what: 'a', found: 0.9512, unit: '×', limit: 0.9, bound: 'least', goal: 0.95, note: 'two rounds' },
    { what: 'longer', found: 12345.6, unit: '/s' },
    { what: 'gone', unit: '×', limit: 0.65, bound: 'least', note: 'not installed' },
  ];
  expect(table(bars)).toBe(
    [
      'a       0.951 ×   ≥ 0.9 ×   PASS (goal 0.95)  two rounds',
      'longer  12346 /s',
      'gone              ≥ 0.65 ×  not measured      not installed',
      '',
    ].join('\n'),
  );
});

it('a median is the middle value, or the mean of the two in the middle, for any order', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([])).toBeNaN();
});

it('values are shown with three digits, whole ones whole', () => {
  expect([7, 0.12345, 99.94, 100.4, 25000].map(shown)).toEqual(['7', '0.123', '99.9', '100', '25000']);
});

it('rounds in which a server that does not change differed more than three times are not judged', () => {
  expect(unsteady('bare node:http', [1, 3, 2])).toBeUndefined();
  expect(unsteady('bare node:http', [1, 3.5, 2])).toBe(
    'bare node:http itself differed 3.5 times between rounds, more than 3',
  );
});
