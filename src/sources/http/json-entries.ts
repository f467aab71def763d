import { getManyValues, type Many, none } from 'stream-chain/defs.js';
import Assembler from 'stream-json/assembler.js';
import { jsonParser, type Token } from 'stream-json/parser.js';
import { badAnswer, passingFailure, SourceError } from '../source.ts';
import { JsonBounds } from './json-bounds.ts';

export interface JsonEntry {
  readonly map: string;
  readonly key: string;
  readonly value: unknown;
}

export interface EntriesOptions {
  /** Paths of keys from the root, e.g. `terms.OnDemand`; none of them inside another. */
  readonly maps: readonly string[];
  /** Returns whether an entry is wanted. Called after all earlier entries were consumed. Default: all. */
  readonly isWanted?: (map: string, key: string) => boolean;
  readonly where: string;
  /** Characters and values of one entry. Default: `LARGEST_ENTRY`. */
  readonly largest?: number;
}

/** Characters and values of one entry, which is in memory as a whole. A term of AWS has some thousand. */
const LARGEST_ENTRY = 4 * 1024 * 1024;
/** The same of a row of a list: as long as a line of CSV may be. */
const LARGEST_ROW = 100_000;

/** Bytes for one call of the tokenizer. With whole chunks, tokens live longer and the process needs half more memory. */
const BYTES_AT_ONCE = 16_384;

/**
 * Yields the entries of some maps inside JSON of any size, with one entry in memory at a time. Checks the whole text.
 * @throws SourceError `invalid` for text that is no JSON or exceeds a bound; `retry` if it ends too early
 */
export async function* entriesOf(
  body: AsyncIterable<Uint8Array>,
  { maps, isWanted = () => true, where, largest = LARGEST_ENTRY }: EntriesOptions,
): AsyncGenerator<JsonEntry, void> {
  const deepest = Math.max(...maps.map((map) => map.split('.').length)) + 1;
  const keys: string[] = [];
  let depth = 0;
  let entry: { map: string; key: string; depth: number; value: BoundedValue } | undefined;

  function beginEntry(key: string): void {
    if (entry !== undefined || depth > deepest) return;
    keys.length = depth - 1;
    const map = keys.join('.');
    keys.push(key);
    if (!maps.includes(map) || !isWanted(map, key)) return;
    entry = { map, key, depth, value: new BoundedValue(largest, `an entry of ${map} in ${where} has`) };
  }

  for await (const tokens of tokensOf(body, where)) {
    for (const token of tokens) {
      entry?.value.consume(token);
      depth += STEPS[token.name] ?? 0;
      if (token.name === 'keyValue') beginEntry(token.value);
      else if (entry?.depth === depth) {
        const { map, key, value } = entry;
        entry = undefined;
        yield { map, key, value: value.current };
      }
    }
  }
}

/** Yields the elements of a JSON list of any size, with one in memory at a time. @throws as `entriesOf` */
export async function* elementsOf(
  body: AsyncIterable<Uint8Array>,
  where: string,
): AsyncGenerator<unknown, void> {
  let depth = 0;
  let found = 0;
  let element: BoundedValue | undefined;
  for await (const tokens of tokensOf(body, where)) {
    for (const token of tokens) {
      const isEnd = depth === 1 && token.name === 'endArray';
      if (depth === 1 && !isEnd)
        element ??= new BoundedValue(LARGEST_ROW, `row ${found + 1} of ${where} has`);
      if (depth === 0 && token.name !== 'startArray')
        throw badAnswer(`${where} answers JSON that is no list; it must be a list of rows`);
      element?.consume(token);
      depth += STEPS[token.name] ?? 0;
      if (depth !== 1 || element === undefined) continue;
      const value = element.current;
      element = undefined;
      found += 1;
      yield value;
    }
  }
}

const STEPS: Partial<Record<Token['name'], number>> = {
  startObject: 1,
  startArray: 1,
  endObject: -1,
  endArray: -1,
};

class BoundedValue {
  readonly #assembler = new Assembler();
  readonly #most: number;
  readonly #what: string;
  #size = 0;

  constructor(most: number, what: string) {
    [this.#most, this.#what] = [most, what];
  }

  get current(): unknown {
    return this.#assembler.current;
  }

  consume(token: Token): void {
    this.#size += 1 + ('value' in token && typeof token.value === 'string' ? token.value.length : 0);
    if (this.#size > this.#most) {
      const problem = `${this.#what} more than ${this.#most} characters and values, the most that are read`;
      throw badAnswer(`${problem}; check the source's URL`);
    }
    this.#assembler.consume(token);
  }
}

/** Yields the tokens of a body in groups, within the bounds of `JsonBounds`. */
async function* tokensOf(
  body: AsyncIterable<Uint8Array>,
  where: string,
): AsyncGenerator<readonly Token[], void> {
  const tokens = tokenizer(where);
  const bounds = new JsonBounds(where, Number.POSITIVE_INFINITY);
  for await (const piece of body) {
    for (let at = 0; at < piece.length; at += BYTES_AT_ONCE) {
      const part = piece.subarray(at, at + BYTES_AT_ONCE);
      bounds.check(part);
      yield tokens.next(part);
    }
  }
  tokens.end();
}

/** Returns the failure of a text that JSON.parse rejected: `retry` if it ends too early, else `invalid`. Quotes nothing of it. */
export function failureOfJson(bytes: Uint8Array, where: string): SourceError {
  const tokens = tokenizer(where);
  try {
    for (let at = 0; at < bytes.length; at += BYTES_AT_ONCE)
      tokens.next(bytes.subarray(at, at + BYTES_AT_ONCE));
    tokens.end();
  } catch (error) {
    if (error instanceof SourceError) return error;
    throw error;
  }
  return badAnswer(`${where} answers no valid JSON`);
}

/** Calls the parser's stages as functions; as streams they take three times as long. */
function tokenizer(where: string) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  // `none` ends the input of a stage.
  const parse = jsonParser({ packValues: true, streamValues: false }) as (
    text: string | typeof none,
  ) => Many<Token> | typeof none;
  let begun = false;
  return {
    next(bytes: Uint8Array): readonly Token[] {
      let text: string | undefined;
      try {
        text = decoder.decode(bytes, { stream: true });
        const tokens = parse(text);
        return tokens === none ? [] : getManyValues(tokens);
      } catch {
        // The parser's message quotes the body, which may contain a secret.
        throw badAnswer(`${where} answers ${problemOf(text, begun)}`);
      } finally {
        begun ||= text?.trim() !== '';
      }
    },
    end(): void {
      try {
        parse(none);
      } catch {
        const problem = begun ? 'JSON that ends too early' : 'an empty body';
        throw passingFailure(`${where} answers ${problem}`);
      }
    },
  };
}

function problemOf(text: string | undefined, begun: boolean): string {
  if (text === undefined) return 'text that is no valid UTF-8';
  if (!begun && /^\s*</.test(text)) return 'HTML or XML where JSON is expected; check the URL';
  return 'no valid JSON';
}
