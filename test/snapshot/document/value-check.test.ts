import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isUsable } from '../../../src/snapshot/document/value-check.ts';

const REGION = { kind: 'region', regionId: 1 } as const;
type Entry = [key: string, place: [start: number, end: number]];

/** A list, and its index as the encoder writes it. */
const documents = fc
  .array(fc.tuple(fc.string({ unit: 'binary' }), fc.string()), { maxLength: 8 })
  .map((elements) => {
    let at = 1;
    const texts: string[] = [];
    const index = elements.map(([key, value]): Entry => {
      const text = JSON.stringify({ value });
      const end = at + Buffer.byteLength(text);
      const entry: Entry = [key, [at, end]];
      texts.push(text);
      at = end + 1;
      return entry;
    });
    return { identity: Buffer.from(`[${texts.join(',')}]`), index: Buffer.from(JSON.stringify(index)) };
  });

/** Whether the parsed index names all elements, one after the other. */
function isTiledWhenParsed(identity: Buffer, index: Buffer): boolean {
  let entries: unknown;
  try {
    entries = JSON.parse(index.toString());
  } catch {
    return false;
  }
  if (!Array.isArray(entries)) return false;
  let rebuilt = '';
  for (const entry of entries) {
    if (!Array.isArray(entry) || entry.length !== 2 || typeof entry[0] !== 'string') return false;
    const [, place] = entry;
    if (!Array.isArray(place) || place.length !== 2 || !place.every(Number.isInteger)) return false;
    const [start, end] = place as [number, number];
    if (start !== Buffer.byteLength(rebuilt) + 1) return false;
    const element = identity.toString('utf8', start, end);
    if (element.length < 2 || !element.startsWith('{') || !element.endsWith('}')) return false;
    rebuilt += `${rebuilt === '' ? '[' : ','}${element}`;
  }
  return `${rebuilt === '' ? '[' : rebuilt}]` === identity.toString();
}

it('each list from the encoder is accepted', () => {
  fc.assert(
    fc.property(documents, ({ identity, index }) => {
      expect(isUsable(REGION, identity, index)).toBe(true);
    }),
    { numRuns: 500 },
  );
});

it('a changed index is accepted only if the parser agrees', () => {
  const change = fc.record({ at: fc.nat(), by: fc.nat(255), cut: fc.nat(3) });
  fc.assert(
    fc.property(documents, fc.array(change, { minLength: 1, maxLength: 3 }), (document, changes) => {
      let index = Buffer.from(document.index);
      for (const { at, by, cut } of changes) {
        const place = at % index.length;
        index = Buffer.concat([
          index.subarray(0, place),
          Buffer.from([by]),
          index.subarray(Math.min(index.length, place + cut)),
        ]);
      }
      if (isUsable(REGION, document.identity, index))
        expect(isTiledWhenParsed(document.identity, index)).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

it.each([
  ['a leading zero', '[["a",[01,8]]]'],
  ['a key with a control character', '[["\n",[1,8]]]'],
  ['a key with an unknown escape', '[["\\x",[1,8]]]'],
  ['an unterminated key', '[["a'],
  ['extra bytes at the end', '[["a",[1,8]]]]'],
  ['a comma at its end', '[["a",[1,8]],]'],
  ['a number beyond all limits', `[["a",[1,${'9'.repeat(400)}]]]`],
  ['nothing', ''],
  ['half a list', '['],
])('an index with %s is rejected', (_, index) => {
  const identity = Buffer.from('[{"a":1}]');
  expect(isUsable(REGION, identity, Buffer.from('[["a",[1,8]]]'))).toBe(true);
  expect(isUsable(REGION, identity, Buffer.from(index))).toBe(false);
});
