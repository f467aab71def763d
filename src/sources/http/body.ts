import type { z } from 'zod';
import { problemsOf } from '../schema/problems.ts';
import { SourceError } from '../source.ts';
import { failureOfJson } from './json-entries.ts';

/**
 * Reads a body whole, counting as it streams.
 * @throws SourceError `invalid` as soon as it is larger than `maxBytes`; whatever the body itself fails with
 */
export async function readBytes(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  where: string,
): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.byteLength;
    if (length > maxBytes) throw tooLarge(maxBytes, where);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}

/** The failure of a body that is larger than allowed, or says that it will be. */
export function tooLarge(maxBytes: number, where: string): SourceError {
  return new SourceError(
    'invalid',
    `${where} answers more than the ${maxBytes} bytes that are read of one answer`,
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

/**
 * The payload in a JSON body.
 * @throws SourceError `retry` for JSON that ends too early, even where the body is whole: it was cut before the upstream
 *   sent it; else `invalid`, naming the first fields that do not fit
 */
export function parseJson<T>(bytes: Uint8Array, schema: z.ZodType<T>, where: string): T {
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
