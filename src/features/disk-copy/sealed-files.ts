import { open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

/** Bytes that hold the first line of every file. */
const LINE_AT_MOST = 512;

/** A file is not what was written. */
export class DamagedFile extends Error {}

/** Files of one folder that begin with a line and its checksum. A rename replaces each of them. */
export class SealedFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  /** Undefined for a file that is not there. */
  async bytesOf(name: string): Promise<Buffer | undefined> {
    return ifThere(readFile(this.path(name)));
  }

  /** The line of a file that has nothing else; undefined for one that is not there, or damaged. */
  async valueOf<T>(name: string): Promise<T | undefined> {
    return unsealed<T>((await this.bytesOf(name))?.toString());
  }

  /** The first line, without reading the rest; undefined for a file that is not there, or damaged. */
  async headOf<T>(name: string): Promise<T | undefined> {
    const file = await ifThere(open(this.path(name)));
    if (!file) return undefined;
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(LINE_AT_MOST), 0, LINE_AT_MOST, 0);
      return unsealed<T>(firstLine(buffer.subarray(0, bytesRead)));
    } finally {
      await file.close();
    }
  }

  /** Writes a file whole, under a temporary name first. */
  async replace(name: string, head: unknown, rest: Buffer = Buffer.alloc(0)): Promise<void> {
    const temporary = this.path(`tmp-${crypto.randomUUID()}`);
    try {
      const content = Buffer.concat([Buffer.from(sealed(head)), rest]);
      await writeFile(temporary, content, { flag: 'wx', mode: 0o600 });
      await rename(temporary, this.path(name));
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
  }

  async remove(name: string): Promise<void> {
    await rm(this.path(name), { force: true });
  }
}

/** The first line of a file, with its end. */
export const firstLine = (file: Buffer): string => {
  const head = file.subarray(0, LINE_AT_MOST);
  return head.toString('utf8', 0, head.indexOf('\n') + 1);
};

/** One line with its checksum. */
export function sealed(value: unknown): string {
  const text = JSON.stringify(value);
  return `${checksum(text)} ${text}\n`;
}

/** Undefined for anything that `sealed` has not made. */
export function unsealed<T>(line: string | undefined): T | undefined {
  const [, sum, text = ''] = /^([0-9a-f]{8}) (.*)\n$/.exec(line ?? '') ?? [];
  return sum !== undefined && sum === checksum(text) ? (JSON.parse(text) as T) : undefined;
}

const checksum = (text: string): string => crc32(text).toString(16).padStart(8, '0');

/** Undefined for what is not there. */
async function ifThere<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

export const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT';
