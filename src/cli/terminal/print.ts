/** Prints the output of commands. Escapes control characters, since names and reasons come from upstreams. */
import { harmlessJson, harmlessLines } from '../../domain/text/control-characters.ts';

/** Prints lines on standard output, and ends the last one. */
export function print(lines: string): void {
  process.stdout.write(`${harmlessLines(lines)}\n`);
}

/** Prints text on standard output that ends with a line end. */
export function printText(text: string): void {
  process.stdout.write(harmlessLines(text));
}

/** Prints lines on standard error. */
export function printAside(lines: string): void {
  process.stderr.write(`${harmlessLines(lines)}\n`);
}

/** Prints one value as JSON on standard output. */
export function printJson(value: unknown): void {
  process.stdout.write(`${harmlessJson(JSON.stringify(value, null, 2))}\n`);
}
