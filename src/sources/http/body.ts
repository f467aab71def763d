import { setImmediate } from 'node:timers/promises';
import type { z } from 'zod';
import { problemsOf } from '../schema/rows.ts';
import { badAnswer, type SourceError } from '../source.ts';
import type { SilenceDeadline } from './deadline.ts';
import { JsonBounds } from './json-bounds.ts';
import { failureOfJson } from './json-entries.ts';

/** @param check receives each chunk before it is stored @throws SourceError `invalid` for more than `maxBytes` */
export async function readBytes(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  where: string,
  check: (chunk: Uint8Array) => void = () => {},
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.byteLength;
    if (length > maxBytes) throw tooLarge(maxBytes, where);
    check(chunk);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

export function tooLarge(maxBytes: number, where: string): SourceError {
  return badAnswer(
    `${where} answers more than ${maxBytes} bytes, the most that are read of one answer; check the source's URL`,
  );
}

export interface JsonPayload<T> {
  readonly data: T;
  readonly values: number;
}

/**
 * Reads a whole JSON body. @throws SourceError `retry` for JSON that ends too early, even in a whole body: the upstream sent it
 * incomplete; else `invalid`, with the first fields that do not fit
 */
export async function readJson<T>(
  body: AsyncIterable<Uint8Array>,
  schema: z.ZodType<T>,
  maxBytes: number,
  where: string,
): Promise<JsonPayload<T>> {
  const bounds = new JsonBounds(where);
  const bytes = await readBytes(body, maxBytes, where, (chunk) => bounds.check(chunk));
  let payload: unknown;
  try {
    payload = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw failureOfJson(bytes, where);
  }
  const parsed = schema.safeParse(payload);
  if (parsed.success) return { data: parsed.data, values: bounds.values };
  throw badAnswer(`${where} answers a payload that does not fit: ${problemsOf(parsed.error)}`);
}

export interface ChunksOptions {
  readonly silence: SilenceDeadline;
  readonly maxBytes: number;
  readonly where: string;
  readonly failed: (error: unknown) => unknown;
}

/** Yields the chunks of a body at the speed of their use. Leaving the loop early ends the request. */
export async function* chunksOf(
  body: AsyncIterable<Uint8Array>,
  { silence, maxBytes, where, failed }: ChunksOptions,
): AsyncGenerator<Uint8Array, void> {
  const reader = body[Symbol.asyncIterator]();
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await silence.during(reader.next()).catch((error: unknown) => {
        throw failed(error);
      });
      if (done === true) return;
      length += value.byteLength;
      if (length > maxBytes) throw tooLarge(maxBytes, where);
      yield value;
      // Otherwise chunks that have already arrived would block timers and other connections.
      await setImmediate();
    }
  } finally {
    // Rejects with the error that the body has already failed with.
    await reader.return?.()?.catch(() => {});
  }
}

/** Waits for the first chunk, and returns all chunks. @throws the error of reading the first chunk */
export async function begun(
  body: AsyncGenerator<Uint8Array, void>,
): Promise<AsyncGenerator<Uint8Array, void>> {
  const first = await body.next();
  return (async function* () {
    try {
      if (first.done) return;
      yield first.value;
      yield* body;
    } finally {
      await body.return();
    }
  })();
}
