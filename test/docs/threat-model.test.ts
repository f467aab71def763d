/** Each control of the threat model names the tests that prove it. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';

const PAGE = readFileSync(inPackage('docs/hardening.md'), 'utf8');

interface Control {
  readonly threat: string;
  readonly proof: string;
}

/** Returns the rows of all tables with the columns threat, control and proof. */
function controlsOf(page: string): Control[] {
  const [, section = ''] = page.split('<!-- controls');
  return section
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| threat |'))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, threat = '', , proof = '']) => ({ threat, proof }));
}

const CONTROLS = controlsOf(PAGE);

describe('the threat model', () => {
  it('has controls at each boundary', () => {
    expect(CONTROLS.length).toBeGreaterThan(30);
    for (const boundary of [1, 2, 3, 6, 7]) expect(PAGE).toMatch(new RegExp(`^#### ${boundary}\\. `, 'm'));
  });

  it.each(CONTROLS)('names a proof of the control of: $threat', ({ proof }) => {
    const tests = [...proof.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
    expect(tests.length).toBeGreaterThan(0);
    for (const path of tests) {
      expect(path).toMatch(/^test\/.+\.test\.ts$/);
      expect(existsSync(inPackage(path)), path).toBe(true);
      expect(/\b(expect|until)\(/.test(readFileSync(inPackage(path), 'utf8')), path).toBe(true);
    }
  });
});
