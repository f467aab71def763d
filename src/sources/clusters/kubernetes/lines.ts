/**
 * Splits a body into lines. Drops text after the last line break: the connection was lost within a line.
 * @throws RangeError for a line of more than `maxBytes`, or a line that is not UTF-8
 */
export async function* linesOf(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<string, void> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    let from = 0;
    for (;;) {
      const end = piece.indexOf(0x0a, from);
      const part = piece.subarray(from, end === -1 ? undefined : end);
      parts.push(part);
      length += part.byteLength;
      if (length > maxBytes) throw new RangeError(`a line of more than ${maxBytes} bytes`);
      if (end === -1) break;
      const line = decoded(Buffer.concat(parts, length));
      [parts, length, from] = [[], 0, end + 1];
      if (line.trim() !== '') yield line;
    }
  }
}

/** Strict: a replacement character could become part of a name. */
function decoded(line: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(line);
  } catch (cause) {
    throw new RangeError('a line that is no valid UTF-8', { cause });
  }
}
