import type { z } from 'zod';
import { problemsOf } from './problems.ts';
import { SourceError } from './source.ts';

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

/** The answer to a body that is, or says that it will be, larger than is read. */
export function tooLarge(maxBytes: number, where: string): SourceError {
  return new SourceError(
    'invalid',
    `${where} answers more than the ${maxBytes} bytes that are read of one answer`,
  );
}

/**
 * Whether something tells how long a body is: one that ends with its connection looks whole when it was cut.
 * @param has whether the answer has this header
 */
export function isFramed(has: (header: string) => boolean): boolean {
  return has('content-length') || has('transfer-encoding');
}

/**
 * The document in a body. `mayBeCut` says that nothing told how long the body would be, so that broken JSON can be
 * a cut connection as well.
 * @throws SourceError `invalid` (`retry` for what may have been cut), naming the first fields that do not fit
 */
export function parseJson<T>(bytes: Uint8Array, schema: z.ZodType<T>, where: string, mayBeCut = false): T {
  let document: unknown;
  try {
    document = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    if (/^\s*</.test(Buffer.from(bytes.subarray(0, 100)).toString('latin1'))) {
      throw new SourceError('invalid', `${where} answers HTML or XML where JSON is expected; check the URL`);
    }
    // The parser's own message quotes the body, which may hold what must not be logged.
    if (mayBeCut) throw new SourceError('retry', `${where} answers JSON that breaks off or is broken`);
    const problem = cause instanceof SyntaxError ? 'no valid JSON' : 'text that is no valid UTF-8';
    throw new SourceError(
      'invalid',
      `${where} answers ${bytes.byteLength === 0 ? 'an empty body' : problem}`,
    );
  }
  const parsed = schema.safeParse(document);
  if (!parsed.success) {
    throw new SourceError(
      'invalid',
      `${where} answers a document that does not fit: ${problemsOf(parsed.error)}`,
    );
  }
  return parsed.data;
}
