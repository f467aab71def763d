import { expect, it } from 'vitest';
import { jsonBody, longBody } from '../../../src/snapshot/document/body.ts';

it('a document with a long list has the same bytes in slices, whatever it contains', async () => {
  const shown = (n: number) => ({ id: n, name: `"${n}"\u2028`, price: n / 3, gone: undefined, none: null });
  const elements = Array.from({ length: 5000 }, (_, i) => i);
  for (const list of [elements, []]) {
    const document = { total: 1.5, machines: list, left: undefined, next: null, 'a"b': ['é'] };
    const [long, whole] = [
      await longBody(document, 'machines', shown),
      jsonBody({ ...document, machines: list.map(shown) }),
    ];
    expect(long.identity.toString()).toBe(whole.identity.toString());
    expect(long.hash).toBe(whole.hash);
  }
});

it('a document with a long list begins in a later turn than its request', async () => {
  const shown: number[] = [];
  const made = longBody({ machines: [1, 2] }, 'machines', (n) => shown.push(n));
  await Promise.resolve();
  expect(shown).toEqual([]);
  await made;
  expect(shown).toEqual([1, 2]);
});
