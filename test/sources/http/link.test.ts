import { expect, it } from 'vitest';
import { nextLink } from '../../../src/sources/http/headers.ts';

it.each([
  ['<https://host/a?page=2>; rel="next"', 'https://host/a?page=2'],
  ['<?page=2>;rel=next', '?page=2'],
  ['<a>; rel="prev", <b,c>; title="x, \\"y\\""; REL="last Next"', 'b,c'],
  ['<a>; flag, <b>; rel=next', 'b'],
])('the next page of %s is %s', (header, next) => {
  expect(nextLink(header)).toBe(next);
});

it('reads headers that a pattern could only read by backtracking', () => {
  const padded = `<a>;${' a '.repeat(30)}`.slice(0, 95);
  expect(nextLink(`${padded}!`)).toBeUndefined();
  expect(nextLink(`<a>${';a'.repeat(4000)}!`)).toBeUndefined();
  expect(nextLink(`<a>${' '.repeat(8000)}!`)).toBeUndefined();
  expect(nextLink('<'.repeat(8000))).toBeUndefined();
  expect(nextLink(`<a>; title="${'\\'.repeat(8000)}`)).toBeUndefined();
});

it('refuses a longer header: without its link the list would end unnoticed', () => {
  expect(() => nextLink(`<${'a'.repeat(8192)}>; rel="next"`)).toThrow(
    expect.objectContaining({
      kind: 'invalid',
      message: expect.stringContaining('more than 8192 characters'),
    }),
  );
});

it.each([
  null,
  '',
  'nonsense',
  '<a>; rel="prev"',
  '<a>; rel="nextish"',
  '<a>; title="rel=next"',
  'a; rel=next',
])('there is no next page in %j', (header) => {
  expect(nextLink(header)).toBeUndefined();
});
