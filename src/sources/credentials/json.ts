/** The value of a JSON text; undefined where it is none. The parser's own message would quote the text. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
