/** Files that begin with one line of JSON and its checksum. A rename replaces each file as a whole. */
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';

/** A file does not hold what was written. */
export class DamagedFile extends Error {}

export async function readIfExists(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return undefined;
  }
}

/** Returns the first line, undefined if it is damaged, and the bytes after it. Undefined if the file does not exist. */
export async function readFileOf<T>(path: string) {
  const file = await readIfExists(path);
  if (!file) return undefined;
  const end = file.indexOf('\n') + 1;
  return { head: decodeLine<T>(file.toString('utf8', 0, end)), rest: file.subarray(end) };
}

export async function replaceFile(
  path: string,
  head: unknown,
  rest: Buffer = Buffer.alloc(0),
): Promise<void> {
  const temporary = join(dirname(path), `tmp-${crypto.randomUUID()}`);
  try {
    const content = Buffer.concat([Buffer.from(encodeLine(head)), rest]);
    await writeFile(temporary, content, { flag: 'wx', mode: 0o600 });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
}

export function encodeLine(value: unknown): string {
  const text = JSON.stringify(value);
  return `${checksum(text)} ${text}\n`;
}

export function decodeLine<T>(line: string): T | undefined {
  const [, sum, text = ''] = /^([0-9a-f]{8}) (.*)\n$/.exec(line) ?? [];
  return sum !== undefined && sum === checksum(text) ? (JSON.parse(text) as T) : undefined;
}

const checksum = (text: string): string => crc32(text).toString(16).padStart(8, '0');
