/**
 * Cuts a body into its lines. What follows the last line break is no line: a connection that was cut left it behind.
 * @throws RangeError for a line of more than `maxBytes`; whatever the body fails with
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
      const line = Buffer.concat(parts, length).toString('utf8');
      [parts, length, from] = [[], 0, end + 1];
      if (line.trim() !== '') yield line;
    }
  }
}
