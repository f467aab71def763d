import type { z } from 'zod';
import { problemsOf } from '../schema/problems.ts';
import { SourceError } from '../source.ts';
import { JsonBounds } from './json-bounds.ts';
import { failureOfJson } from './json-entries.ts';

/**
 * Reads a body whole, counting as it streams.
 * @param check sees each chunk before it is kept
 * @throws SourceError `invalid` for a body of more than `maxBytes`; whatever `check` and the body itself fail with
 */
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

/** The failure of a body that is larger than allowed, or says that it will be. */
export function tooLarge(maxBytes: number, where: string): SourceError {
  return new SourceError(
    'invalid',
    `${where} answers more than ${maxBytes} bytes, the most that are read of one answer; check the source's URL`,
  );
}

/**
 * Whether length or chunks delimit a body. One that only the end of its connection delimits looks whole when it was cut.
 * @param header the value of one of the answer's headers
 */
export function isFramed(header: (name: string) => string | null): boolean {
  // RFC 9112: with any other last coding the body ends with the connection too.
  const transferCodings = header('transfer-encoding');
  if (transferCodings !== null) return /(^|,)\s*chunked\s*$/i.test(transferCodings);
  return header('content-length') !== null;
}

/** A payload, and how many JSON values it has at most. */
export interface JsonPayload<T> {
  readonly data: T;
  readonly values: number;
}

/**
 * Reads a JSON body whole, within the bounds of `JsonBounds`.
 * @throws SourceError as `readBytes` and `parseJson` do
 */
export async function readJson<T>(
  body: AsyncIterable<Uint8Array>,
  schema: z.ZodType<T>,
  maxBytes: number,
  where: string,
): Promise<JsonPayload<T>> {
  const bounds = new JsonBounds(where);
  const bytes = await readBytes(body, maxBytes, where, (chunk) => bounds.check(chunk));
  return { data: parseJson(bytes, schema, where), values: bounds.values };
}

/**
 * The payload in a JSON body whose bounds were checked.
 * @throws SourceError `retry` for JSON that ends too early, even where the body is whole: it was cut before the upstream
 *   sent it; else `invalid`, naming the first fields that do not fit
 */
function parseJson<T>(bytes: Uint8Array, schema: z.ZodType<T>, where: string): T {
  let payload: unknown;
  try {
    payload = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw failureOfJson(bytes, where);
  }
  const parsed = schema.safeParse(payload);
  if (!parsed.success) {
    throw new SourceError(
      'invalid',
      `${where} answers a payload that does not fit: ${problemsOf(parsed.error)}`,
    );
  }
  return parsed.data;
}
