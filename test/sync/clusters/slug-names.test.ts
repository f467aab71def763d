import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { freeSlug, slugOf } from '../../../src/sync/clusters/slugs.ts';

const anyName = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.string());

/** Returns slugs for names in the given order. */
function slugs(names: readonly string[]): string[] {
  const taken = new Set<string>();
  for (const name of names) taken.add(freeSlug(slugOf(name), taken));
  return [...taken];
}

describe('the slug of a name', () => {
  it.each([
    ['Cluster Test', 'cluster-test'],
    ['Búsqueda de clientes', 'busqueda-de-clientes'],
    ['Größe – Süd', 'groesse-sued'],
    ['Łódź', 'lodz'],
    ['Привет мир', 'privet-mir'],
    ['Ελλάδα', 'ellada'],
    ['Zoë & Çelik', 'zoe-and-celik'],
    ['PostgreSQL-EU', 'postgresql-eu'],
    ['  spaces\tand\nlines ', 'spaces-and-lines'],
    ['--a__b--', 'a-b'],
    ['v1.2.3', 'v1-2-3'],
    ['42', '42'],
  ])('%j is %s', (name, slug) => {
    expect(slugOf(name)).toBe(slug);
  });

  it.each(['', '   ', '---', '東京', '🚀', '​'])(
    'is "cluster" if no usable character remains of %j',
    (name) => {
      expect(slugOf(name)).toBe('cluster');
    },
  );

  it('is lower-case ASCII words joined by single hyphens, for any text', () => {
    fc.assert(
      fc.property(anyName, (name) => {
        expect(slugOf(name)).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
      }),
      { numRuns: 1_000 },
    );
  });

  it('of a slug is unchanged', () => {
    fc.assert(
      fc.property(anyName, (name) => {
        expect(slugOf(slugOf(name))).toBe(slugOf(name));
      }),
    );
  });
});

describe('a free slug', () => {
  it.each([
    ['events', [], 'events'],
    ['events', ['event'], 'events'],
    ['events', ['events'], 'events-2'],
    ['events', ['events', 'events-2'], 'events-3'],
    ['events', ['events', 'events-3'], 'events-2'],
    ['events-2', ['events-2'], 'events-2-2'],
  ])('for %s next to %j is %s', (wanted, taken, expected) => {
    expect(freeSlug(wanted, new Set(taken))).toBe(expected);
  });

  it('differs for each name, and is the same for the same order', () => {
    const few = fc.constantFrom('Events', 'events', 'events 2', 'Events-2', '東京', 'cluster', 'cluster 2');
    fc.assert(
      fc.property(fc.array(few, { maxLength: 12 }), (names) => {
        expect(slugs(names)).toHaveLength(names.length);
        expect(slugs(names)).toEqual(slugs(names));
      }),
    );
  });

  it('does not depend on later names', () => {
    fc.assert(
      fc.property(fc.array(anyName, { maxLength: 6 }), anyName, (names, later) => {
        expect(slugs([...names, later]).slice(0, names.length)).toEqual(slugs(names));
      }),
    );
  });
});
