/** Generates invalid payloads. */
import fc from 'fast-check';
import type { Json } from '../../conformance/catalogue-case.ts';
import { pick } from './budget.ts';

type Holder = { [key: string]: Json };

/** A change of a parsed payload. `at` and `other` choose places in it. */
interface Change {
  readonly what: (typeof CHANGES)[number];
  readonly at: number;
  readonly other: number;
  readonly value: Json;
}

/** A change of a payload's bytes. */
interface Damage {
  readonly what: 'cut' | 'flip' | 'insert' | 'remove' | 'repeat' | 'number' | 'twice';
  readonly at: number;
  readonly bytes: Uint8Array;
}

export interface Mutation {
  /** The page, or `instead`, another page in its place. */
  readonly page: number;
  readonly instead: number | undefined;
  readonly status: number;
  readonly changes: readonly Change[];
  readonly damage: Damage | undefined;
  /** Omits its headers. */
  readonly bare: boolean;
}

const CHANGES = [
  'drop',
  'duplicate',
  'retype',
  'retype',
  'scale',
  'scale',
  'swap',
  'rename',
  'empty',
  'nest',
  'add',
  'scale all',
  'halve',
  'double',
] as const;

/** Levels around a value, added as text: JSON.stringify could not write such a deep document. */
const DEEP = 20_000;
const NESTS: Readonly<Record<string, string>> = {
  '@lists@': '['.repeat(DEEP) + ']'.repeat(DEEP),
  '@objects@': `${'{"0":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`,
};
const POLLUTING: Json = JSON.parse(
  '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
);

const FACTORS = [0.001, 0.01, 0.5, 2, 4.9, 5.1, 100, 1000, 1024, -1, 1e12];

const numbers = fc.constantFrom<Json>(
  ...[0, -0, -1, -0.01, 1e-12, 1e-300, 0.1 + 0.2, 1e9, 1e30, 1e308, 2 ** 31, 2 ** 53 + 2, 0.000001],
  ...[
    'NaN',
    'Infinity',
    '-1',
    '1e999',
    '1e-999',
    '0x10',
    ' 5 ',
    '5,00',
    '٣',
    '1_000',
    '',
    '00012',
    '+3',
    '.',
    '1e5',
  ],
);
const texts = fc.constantFrom<Json>(
  ...[
    '',
    ' ',
    '\0',
    'a\0b',
    '\ud800',
    '\udc00x',
    'x'.repeat(100_000),
    '../..',
    'XXX',
    'usd',
    'EUR',
    'USD',
    'GBP',
    'null',
  ],
  ...[
    '__proto__',
    'constructor',
    'toString',
    '\u202Eabc',
    '😀',
    "'; drop table machines; --",
    'fsn1 ',
    'deprecated',
    '9'.repeat(400),
  ],
);
const others = fc.constantFrom<Json>(null, true, false, [], {}, [[]], [null], { a: null }, POLLUTING);
const values = fc.oneof(numbers, texts, others);

const changes: fc.Arbitrary<Change> = fc.record({
  what: fc.constantFrom(...CHANGES),
  at: fc.nat(),
  other: fc.nat(),
  value: values,
});
const damages: fc.Arbitrary<Damage> = fc.record({
  what: fc.constantFrom('cut', 'flip', 'insert', 'remove', 'repeat', 'number', 'twice'),
  at: fc.nat(),
  bytes: fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 6 }),
    fc.constantFrom(
      ...['NaN', '1e999', '-', '"', '}', ',', '\ufeff', '\\u0000', '[[[[', '{"a":'].map(
        (text) => new Uint8Array(Buffer.from(text)),
      ),
    ),
  ),
});

/** @param most changes of one payload at once */
export const mutationsWith = (most: number): fc.Arbitrary<Mutation> =>
  fc.record({
    page: fc.nat(),
    instead: fc.oneof({ weight: 14, arbitrary: fc.constant(undefined) }, fc.nat()),
    status: fc.oneof(
      { weight: 30, arbitrary: fc.constant(200) },
      fc.constantFrom(204, 206, 302, 304, 400, 401, 404, 429, 500, 503),
    ),
    changes: fc.array(changes, { minLength: 1, maxLength: most }),
    damage: fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, damages),
    bare: fc.oneof({ weight: 20, arbitrary: fc.constant(false) }, fc.constant(true)),
  });

/** The payload's bytes after the mutation. */
export function mutatedBytes(payload: Json, { changes, damage }: Mutation): Uint8Array {
  let document = structuredClone(payload);
  for (const change of changes) document = applied(document, change);
  let text = JSON.stringify(document);
  for (const [name, nest] of Object.entries(NESTS)) text = text.replaceAll(JSON.stringify(name), () => nest);
  const bytes = Buffer.from(text);
  return damage === undefined ? bytes : damaged(bytes, damage);
}

/** Each place of a document: its parent, and its name there. */
function placesIn(root: Json): { holder: Holder; key: string }[] {
  const places: { holder: Holder; key: string }[] = [];
  const waiting: Json[] = [root];
  for (let holder = waiting.pop(); holder !== undefined; holder = waiting.pop()) {
    if (typeof holder !== 'object' || holder === null) continue;
    for (const key of Object.keys(holder)) {
      places.push({ holder: holder as Holder, key });
      waiting.push((holder as Holder)[key] ?? null);
    }
  }
  return places;
}

function applied(document: Json, { what, at, other, value: given }: Change): Json {
  // Later changes are made inside of this one.
  const value = structuredClone(given);
  const places = placesIn(document);
  if (places.length === 0) return value;
  const { holder, key } = pick(places, at);
  const found = holder[key] ?? null;
  switch (what) {
    case 'drop':
      if (Array.isArray(holder)) holder.splice(Number(key), 1);
      else delete holder[key];
      break;
    case 'duplicate':
      if (Array.isArray(holder)) holder.push(structuredClone(found));
      else set(holder, `${key}${other % 3 === 0 ? '' : other % 10}`, structuredClone(found));
      break;
    case 'retype':
      set(holder, key, value);
      break;
    case 'scale':
      set(holder, key, scaled(found, pick(FACTORS, other)));
      break;
    case 'swap': {
      const alike = places.filter(
        (place) => typeof place.holder[place.key] === typeof found && place.key === key,
      );
      const with_ = pick(alike, other);
      const theirs = with_.holder[with_.key] ?? null;
      // A value inside itself would be a circle.
      if (typeof found === 'object' || typeof theirs === 'object') break;
      set(holder, key, theirs);
      set(with_.holder, with_.key, found);
      break;
    }
    case 'rename':
      if (Array.isArray(holder)) break;
      delete holder[key];
      set(holder, pick([key.toUpperCase(), `${key}s`, '__proto__', 'constructor', ''], other), found);
      break;
    case 'empty':
      set(holder, key, Array.isArray(found) ? [] : typeof found === 'object' ? {} : '');
      break;
    case 'nest':
      set(holder, key, pick([[found], ...Object.keys(NESTS)], other));
      break;
    case 'scale all':
      // As when an upstream changes its unit.
      for (const place of places.filter((each) => each.key === key))
        set(place.holder, key, scaled(place.holder[key] ?? null, pick(FACTORS, other)));
      break;
    case 'halve':
    case 'double':
      if (Array.isArray(found)) {
        const half = found.slice(0, Math.ceil(found.length / 2));
        set(holder, key, what === 'halve' ? half : [...found, ...structuredClone(found)]);
      }
      break;
    case 'add':
      if (Array.isArray(holder)) holder.push(value);
      else set(holder, pick(['__proto__', 'constructor', 'toJSON', 'then', 'length', '0'], other), value);
  }
  return document;
}

function scaled(value: Json, factor: number): Json {
  if (typeof value === 'number') return value * factor;
  // Prices are often text.
  if (typeof value === 'string' && value !== '' && Number.isFinite(Number(value)))
    return String(Number(value) * factor);
  return value;
}

/** Also for a name with a special meaning in an assignment. */
function set(holder: Holder, key: string, value: Json): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}

function damaged(bytes: Buffer, { what, at, bytes: given }: Damage): Uint8Array {
  const place = bytes.length === 0 ? 0 : at % bytes.length;
  const [before, after] = [bytes.subarray(0, place), bytes.subarray(place)];
  switch (what) {
    case 'cut':
      return before;
    case 'flip':
      return Buffer.concat([
        before,
        after.subarray(0, given.length).map((byte, i) => byte ^ (given[i] ?? 1)),
        after.subarray(given.length),
      ]);
    case 'insert':
      return Buffer.concat([before, given, after]);
    case 'remove':
      return Buffer.concat([before, after.subarray(given.length)]);
    case 'repeat':
      return Buffer.concat([before, after.subarray(0, 50), after]);
    case 'twice':
      return Buffer.concat([bytes, bytes]);
    case 'number': {
      const text = bytes.toString();
      const found = [...text.matchAll(/:-?\d[\d.eE+-]*/g)];
      const number = found.length === 0 ? undefined : pick(found, at);
      if (number === undefined) return bytes;
      const literal = pick(
        ['NaN', 'Infinity', '-Infinity', '1e999', '0x10', '01', '1e-999', '9'.repeat(500)],
        at,
      );
      return Buffer.from(
        `${text.slice(0, number.index)}:${literal}${text.slice(number.index + number[0].length)}`,
      );
    }
  }
}

/**
 * Changes many rows in the same way, as an upstream that lost half of them or changed a unit: the result is
 * well-formed.
 */
export const bulkMutations: fc.Arbitrary<Mutation> = fc
  .record({
    page: fc.nat(),
    changes: fc.array(
      fc.record({
        what: fc.constantFrom(
          'scale all' as const,
          'scale all' as const,
          'halve' as const,
          'double' as const,
        ),
        at: fc.nat(),
        other: fc.nat(),
        value: fc.constant(null),
      }),
      { minLength: 4, maxLength: 12 },
    ),
  })
  .map((given) => ({ ...given, instead: undefined, status: 200, damage: undefined, bare: false }));

/** For a message. */
export function shownMutation(mutation: Mutation): string {
  return JSON.stringify(mutation, (_, value: unknown) =>
    typeof value === 'string' && value.length > 50 ? `${value.slice(0, 50)}… (${value.length})` : value,
  );
}
