import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const PROGRAM = fileURLToPath(new URL('./programs/memory.ts', import.meta.url));

async function measure(limit: number, what: string): Promise<{ really: number; counted: number }> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--expose-gc',
    PROGRAM,
    String(limit),
    what,
  ]);
  return JSON.parse(stdout);
}

describe('the memory of a reader', () => {
  it.each([
    ['lists of machines', 'regions', 6_000_000],
    ['single machines', 'machines', 6_000_000],
    ['tokens and the clusters of their organizations', 'tokens', 6_000_000],
  ])(
    'stays under its limit in the real process when far more %s are read',
    { timeout: 180_000 },
    async (_, what, limit) => {
      const { really, counted } = await measure(limit, what);
      expect(counted).toBeLessThanOrEqual(limit);
      expect(counted).toBeGreaterThan(limit * 0.3);
      expect(really).toBeLessThan(limit);
      // A count above the real size would be wrong too.
      expect(really).toBeGreaterThan(limit * 0.2);
    },
  );
});
