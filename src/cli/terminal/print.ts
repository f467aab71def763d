/**
 * What commands write. Names and reasons come from upstreams, so everything passes here, and nothing of it can steer the
 * terminal of whoever reads it.
 */
import { harmlessJson, harmlessLines } from '../../lib/control-characters.ts';

/** Writes lines to standard output. The last one gets its end. */
export function print(lines: string): void {
  process.stdout.write(`${harmlessLines(lines)}\n`);
}

/** Writes a text to standard output whose lines have their ends. */
export function printText(text: string): void {
  process.stdout.write(harmlessLines(text));
}

/** Writes lines to standard error: what is no result. */
export function printAside(lines: string): void {
  process.stderr.write(`${harmlessLines(lines)}\n`);
}

/** What `--json` prints: one value, and nothing else on standard output. */
export function printJson(value: unknown): void {
  process.stdout.write(`${harmlessJson(JSON.stringify(value, null, 2))}\n`);
}
