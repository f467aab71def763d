/** Files that begin with one line of JSON and its checksum. A rename replaces each file as a whole. */
import { open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';

/** The first line of a file with more than one line is shorter than this (bytes). */
const LINE_AT_MOST = 512;

/** A file does not hold what was written. */
export class DamagedFile extends Error {}

/** Reads a whole file; undefined if it does not exist. */
export const readIfExists = (path: string): Promise<Buffer | undefined> => unlessMissing(readFile(path));

/** Reads the value of a file with one line; undefined if it does not exist or is damaged. */
export async function readValue<T>(path: string): Promise<T | undefined> {
  return decodeLine<T>((await readIfExists(path))?.toString());
}

/** Reads the first line, and not the rest; undefined if the file does not exist or is damaged. */
export async function readHead<T>(path: string): Promise<T | undefined> {
  const file = await unlessMissing(open(path));
  if (!file) return undefined;
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LINE_AT_MOST), 0, LINE_AT_MOST, 0);
    return decodeLine<T>(firstLine(buffer.subarray(0, bytesRead)));
  } finally {
    await file.close();
  }
}

/** Writes a file under a temporary name, and renames it. */
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

/** Returns the first line of a file, with its line break. */
export const firstLine = (file: Buffer): string => {
  const head = file.subarray(0, LINE_AT_MOST);
  return head.toString('utf8', 0, head.indexOf('\n') + 1);
};

/** Returns a line of JSON with its checksum. */
export function encodeLine(value: unknown): string {
  const text = JSON.stringify(value);
  return `${checksum(text)} ${text}\n`;
}

/** Returns the value of a line of `encodeLine`; undefined for any other text. */
export function decodeLine<T>(line: string | undefined): T | undefined {
  const [, sum, text = ''] = /^([0-9a-f]{8}) (.*)\n$/.exec(line ?? '') ?? [];
  return sum !== undefined && sum === checksum(text) ? (JSON.parse(text) as T) : undefined;
}

const checksum = (text: string): string => crc32(text).toString(16).padStart(8, '0');

const unlessMissing = <T>(reading: Promise<T>): Promise<T | undefined> =>
  reading.catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });

export const isMissing = (error: unknown): boolean =>
  (error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT';
