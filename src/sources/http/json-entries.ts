import { getManyValues, type Many, none } from 'stream-chain/defs.js';
import Assembler from 'stream-json/assembler.js';
import { jsonParser, type Token } from 'stream-json/parser.js';
import { SourceError } from '../source.ts';

/** One entry of one of the maps. */
export interface JsonEntry {
  readonly map: string;
  readonly key: string;
  readonly value: unknown;
}

export interface EntriesOptions {
  /** Paths of keys from the root, e.g. `terms.OnDemand`; none of them inside another. */
  readonly maps: readonly string[];
  /** Whether an entry is to be built. It is asked after all entries before have been consumed. Default: all are. */
  readonly isWanted?: (map: string, key: string) => boolean;
  /** The address, for an operator. */
  readonly where: string;
}

/** Tokenized at a time. With whole chunks the tokens live longer, and the process grows by half as much again. */
const BYTES_AT_ONCE = 16_384;

/**
 * The entries of some maps inside JSON of any size, in the order of the text. One entry is in memory at a time. All of the
 * text is checked, also entries that are not wanted.
 * @throws SourceError `invalid` for what is no JSON; `retry` when it ends too early; whatever `body` fails with
 */
export async function* entriesOf(
  body: AsyncIterable<Uint8Array>,
  { maps, isWanted = () => true, where }: EntriesOptions,
): AsyncGenerator<JsonEntry, void> {
  const tokens = tokenizer(where);
  const deepest = Math.max(...maps.map((map) => map.split('.').length)) + 1;
  const keys: string[] = [];
  let depth = 0;
  let entry: { map: string; key: string; depth: number; assembler: Assembler } | undefined;

  function meetKey(key: string): void {
    if (entry !== undefined || depth > deepest) return;
    keys.length = depth - 1;
    const map = keys.join('.');
    keys.push(key);
    if (maps.includes(map) && isWanted(map, key)) entry = { map, key, depth, assembler: new Assembler() };
  }

  for await (const piece of body) {
    for (let at = 0; at < piece.length; at += BYTES_AT_ONCE) {
      for (const token of tokens.next(piece.subarray(at, at + BYTES_AT_ONCE))) {
        entry?.assembler.consume(token);
        if (token.name === 'startObject' || token.name === 'startArray') depth += 1;
        else if (token.name === 'endObject' || token.name === 'endArray') depth -= 1;
        else if (token.name === 'keyValue') meetKey(token.value);
        if (token.name !== 'keyValue' && entry?.depth === depth) {
          const { map, key, assembler } = entry;
          entry = undefined;
          yield { map, key, value: assembler.current };
        }
      }
    }
  }
  tokens.end();
}

/**
 * What is wrong with a text that JSON.parse refused: JSON.parse does not tell an early end from an error in the middle.
 * @returns SourceError `retry` when it ends too early, else `invalid`; its message quotes nothing of the text
 */
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
  return new SourceError('invalid', `${where} answers no valid JSON`);
}

/** The parser's stages are called as functions; as streams they take three times as long. */
function tokenizer(where: string) {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  // `none` tells a stage that nothing follows.
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
        // The parser's message quotes the body, which may hold a secret.
        throw new SourceError('invalid', `${where} answers ${problemOf(text, begun)}`);
      } finally {
        begun ||= text?.trim() !== '';
      }
    },
    end(): void {
      try {
        parse(none);
      } catch {
        const said = begun ? 'JSON that breaks off' : 'an empty body';
        throw new SourceError('retry', `${where} answers ${said}`);
      }
    },
  };
}

/** @param text undefined where it could not be decoded */
function problemOf(text: string | undefined, begun: boolean): string {
  if (text === undefined) return 'text that is no valid UTF-8';
  if (!begun && /^\s*</.test(text)) return 'HTML or XML where JSON is expected; check the URL';
  return 'no valid JSON';
}
