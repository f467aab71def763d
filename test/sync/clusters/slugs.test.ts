import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assignSlugs, freeSlug, type SlugRow, slugOf } from '../../../src/sync/clusters/slugs.ts';
import { runs } from '../../support/random.ts';

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
      { numRuns: runs(1_000) },
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

const row = (sourceKey: string, fields: Partial<SlugRow> = {}): SlugRow => ({
  organizationId: 1,
  sourceKey,
  name: sourceKey,
  given: null,
  old: null,
  ...fields,
});
const assign = (rows: SlugRow[], taken: string[] = []) =>
  Object.fromEntries(
    assignSlugs(
      rows,
      taken.map((slug) => ({ organizationId: 1, slug })),
    ).map(({ sourceKey, slug }) => [sourceKey, slug]),
  );

describe('a slug', () => {
  it.each<[string, SlugRow[], string[], Record<string, string>]>([
    ['is made from the name', [row('Größe 1')], [], { 'Größe 1': 'groesse-1' }],
    ['gets a suffix if the name is taken', [row('a', { name: 'Prod' })], ['prod', 'prod-2'], { a: 'prod-3' }],
    [
      'of the first row has priority over the second',
      [row('b', { name: 'x' }), row('a', { name: 'X' })],
      [],
      { b: 'x', a: 'x-2' },
    ],
    ['stays when the cluster is renamed', [row('a', { name: 'new', old: 'former' })], [], { a: 'former' }],
    ['changes when its source states one', [row('a', { given: 'own', old: 'former' })], ['x'], { a: 'own' }],
    [
      'from the source has priority over one from a name',
      [row('a', { name: 'prod' }), row('b', { given: 'prod' })],
      [],
      { a: 'prod-2', b: 'prod' },
    ],
    [
      'that is stored has priority over one from a source',
      [row('a', { given: 'prod' }), row('b', { old: 'prod' })],
      [],
      { a: 'prod-2', b: 'prod' },
    ],
    [
      'may be exchanged with another cluster’s',
      [row('a', { given: 'two', old: 'one' }), row('b', { given: 'one', old: 'two' })],
      [],
      { a: 'two', b: 'one' },
    ],
    [
      'with a suffix stays when a lower suffix is free again',
      [row('a', { given: 'x', old: 'x-3' })],
      ['x'],
      { a: 'x-3' },
    ],
    [
      'with a suffix stays when a new cluster has exactly that name',
      [row('new', { name: 'x 2' }), row('a', { given: 'x', old: 'x-2' })],
      ['x'],
      { a: 'x-2', new: 'x-2-2' },
    ],
    [
      'with a suffix is replaced when the source’s slug is free',
      [row('a', { given: 'x', old: 'x-2' })],
      [],
      { a: 'x' },
    ],
    [
      'that only resembles a suffixed slug is replaced',
      [row('a', { given: 'x', old: 'x-y' })],
      ['x'],
      { a: 'x-2' },
    ],
    ['is `cluster` if the name has no usable character', [row('a', { name: '!!!' })], [], { a: 'cluster' }],
  ])('%s', (_, rows, taken, slugs) => {
    expect(assign(rows, taken)).toEqual(slugs);
  });

  it('may equal a slug of another organization', () => {
    const rows = [row('a', { name: 'x' }), row('b', { name: 'x', organizationId: 2 })];
    expect(assignSlugs(rows, [{ organizationId: 2, slug: 'y' }])).toEqual([
      { organizationId: 1, sourceKey: 'a', slug: 'x' },
      { organizationId: 2, sourceKey: 'b', slug: 'x' },
    ]);
  });

  const word = fc.constantFrom('a', 'b', 'a-2', 'a-3', 'A', 'a 2');
  const batches = fc.record({
    rows: fc.array(
      fc.record({
        organizationId: fc.integer({ min: 1, max: 2 }),
        name: word,
        given: fc.option(word),
      }),
      { maxLength: 10 },
    ),
    olds: fc.array(fc.option(fc.constantFrom('a', 'b', 'a-2', 'a-3', 'c', 'd', 'e')), { maxLength: 10 }),
    taken: fc.uniqueArray(fc.constantFrom('f', 'a-4', 'b-2'), { maxLength: 3 }),
  });

  /** Stored slugs are unique in their organization, as the database requires. */
  const rowsOf = ({
    rows,
    olds,
  }: {
    rows: Pick<SlugRow, 'organizationId' | 'name' | 'given'>[];
    olds: (string | null)[];
  }) => {
    const held = new Set<string>();
    return rows.map((fields, index): SlugRow => {
      const wanted = olds[index] ?? null;
      const place = `${fields.organizationId}/${wanted}`;
      const old = wanted === null || held.has(place) ? null : wanted;
      if (old !== null) held.add(place);
      return { ...fields, old, sourceKey: `key ${index}` };
    });
  };

  it('is unique in its organization, stays with its cluster, and is unchanged if the input is unchanged', () => {
    fc.assert(
      fc.property(batches, (batch) => {
        const rows = rowsOf(batch);
        const taken = [1, 2].flatMap((organizationId) =>
          batch.taken.map((slug) => ({ organizationId, slug })),
        );
        const slugs = assignSlugs(rows, taken);
        const all = [...slugs, ...taken].map(({ organizationId, slug }) => `${organizationId}/${slug}`);
        expect(new Set(all).size).toBe(all.length);
        for (const [index, { given, old }] of rows.entries()) {
          expect(slugs[index]?.slug).not.toBe('');
          if (old !== null && (given === null || given === old)) expect(slugs[index]?.slug).toBe(old);
        }
        const again = rows.map((one, index) => ({ ...one, old: slugs[index]?.slug ?? null }));
        expect(assignSlugs(again, taken)).toEqual(slugs);
      }),
      { numRuns: runs(500) },
    );
  });
});
