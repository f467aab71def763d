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
