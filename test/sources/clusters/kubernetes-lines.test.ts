import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linesOf } from '../../../src/sources/clusters/kubernetes/lines.ts';

async function* of(...pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

const text = (value: string) => Buffer.from(value);

describe('the lines of a body', () => {
  it('are the same for each split into pieces, also within a character', async () => {
    const line = fc
      .string({ unit: 'binary' })
      .filter((value) => !value.includes('\n') && value.trim() !== '');
    await fc.assert(
      fc.asyncProperty(fc.array(line), fc.array(fc.nat(200)), async (lines, cuts) => {
        const body = text(lines.map((each) => `${each}\n`).join(''));
        const ends = [...cuts.map((cut) => cut % (body.length + 1)).sort((a, b) => a - b), body.length];
        const pieces = ends.map((end, index) => body.subarray(ends[index - 1] ?? 0, end));
        expect(await Array.fromAsync(linesOf(of(...pieces), 10_000))).toEqual(
          lines.map((each) => text(each).toString()),
        );
      }),
    );
  });

  it('do not include the rest after a broken connection', async () => {
    expect(await Array.fromAsync(linesOf(of(text('{"a":1}\n\n{"b"')), 100))).toEqual(['{"a":1}']);
  });

  it('are valid text: unreadable characters are never replaced', async () => {
    const broken = of(Buffer.from([0x22, 0xc3, 0x22, 0x0a]));
    await expect(Array.fromAsync(linesOf(broken, 100))).rejects.toThrow('no valid UTF-8');
  });

  it('have a length limit, also if they never end', async () => {
    const endless = linesOf(of(...Array.from({ length: 50 }, () => text('0123456789'))), 100);
    await expect(Array.fromAsync(endless)).rejects.toThrow('a line of more than 100 bytes');
  });
});
