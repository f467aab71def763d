import { badAnswer, type SourceError } from '../source.ts';

/** Bounds of JSON from an upstream, read whole or as a stream. Real payloads stay far below them. */
const DEEPEST = 64;
const LONGEST_NUMBER = 100;
const LONGEST_TEXT = 1024 * 1024;

/** Values in one answer that is parsed whole, and in all pages of one list: at most about 150 MB of memory. */
export const MOST_VALUES = 2_000_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const [TEXT, COMMA, OPENS, CLOSES, OF_NUMBER] = [1, 2, 3, 4, 5] as const;
const MEANING = new Uint8Array(256);
for (const [characters, meaning] of [
  ['"', TEXT],
  [',', COMMA],
  ['{[', OPENS],
  ['}]', CLOSES],
  ['0123456789+-.eE', OF_NUMBER],
] as const)
  for (const character of characters) MEANING[character.charCodeAt(0)] = meaning;

/** Checks the bounds of JSON before the parser reads it: a small body can become a large heap. Does not validate it. */
export class JsonBounds {
  readonly #where: string;
  readonly #mostValues: number;
  #values = 1;
  #depth = 0;
  #isText = false;
  #isEscaped = false;
  #length = 0;

  /** @param mostValues infinite for a stream, whose values are in memory one at a time */
  constructor(where: string, mostValues = MOST_VALUES) {
    [this.#where, this.#mostValues] = [where, mostValues];
  }

  /** The most values so far: each follows a comma or opens a list or an object. */
  get values(): number {
    return this.#values;
  }

  /** @throws SourceError `invalid` if a bound is exceeded, with the bound and the remedy */
  check(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; )
      at = this.#isText ? this.#text(bytes, at) : this.#structure(bytes, at);
    if (this.#values > this.#mostValues) throw tooManyValues(this.#where, this.#mostValues);
  }

  /** Reads to the end of a string or of the bytes. @returns the position after it */
  #text(bytes: Uint8Array, from: number): number {
    let at = from;
    let isEscaped = this.#isEscaped;
    for (; at < bytes.length; at++) {
      if (isEscaped) isEscaped = false;
      else if (bytes[at] === BACKSLASH) isEscaped = true;
      else if (bytes[at] === QUOTE) {
        this.#isText = false;
        break;
      }
    }
    this.#isEscaped = isEscaped;
    this.#length += at - from;
    if (this.#length > LONGEST_TEXT) throw this.#exceeded('a string or a key', LONGEST_TEXT, 'bytes');
    if (!this.#isText) this.#length = 0;
    return at + 1;
  }

  /** Reads to the beginning of a string or to the end of the bytes. @returns the position after it */
  #structure(bytes: Uint8Array, from: number): number {
    let [values, depth, length] = [this.#values, this.#depth, this.#length];
    let at = from;
    for (; at < bytes.length && !this.#isText; at++) {
      const meaning = MEANING[bytes[at] ?? 0];
      length = meaning === OF_NUMBER ? length + 1 : 0;
      if (length > LONGEST_NUMBER) throw this.#exceeded('a number', LONGEST_NUMBER, 'characters');
      if (meaning === TEXT) this.#isText = true;
      else if (meaning === COMMA) values += 1;
      else if (meaning === CLOSES) depth -= 1;
      else if (meaning === OPENS) {
        values += 1;
        depth += 1;
        if (depth > DEEPEST) throw this.#exceeded('lists and objects', DEEPEST, 'levels within each other');
      }
    }
    [this.#values, this.#depth, this.#length] = [values, depth, length];
    return at;
  }

  #exceeded(what: string, bound: number, unit: string): SourceError {
    return badAnswer(
      `${this.#where} answers JSON with ${what} of more than ${bound} ${unit}, the most that is read; ` +
        "check the source's URL",
    );
  }
}

/** Returns the failure of one answer, or of all pages of a list, with too many values for memory. */
export function tooManyValues(where: string, most: number): SourceError {
  return badAnswer(
    `${where} answers JSON with more than ${most} values, the most that are read of one list; ` +
      "check the source's URL, or split what it lists into several sources",
  );
}
