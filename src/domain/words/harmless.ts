/**
 * Text that others have worded, such as the names that an upstream gives, as it may be written to a terminal: control
 * characters, and those that change the direction of what follows, are shown by their number. Nothing of it can move the
 * cursor, change colours or hide what stands beside it.
 */

/** One line: white space of any kind is one space. */
export function harmless(text: string): string {
  return numbered(text.replaceAll(/\s+/g, ' ').trim());
}

/** Any number of lines, with their indents. */
export function harmlessLines(text: string): string {
  return text.split('\n').map(numbered).join('\n');
}

/** A JSON text whose strings hold such characters escaped: the same value for whoever parses it. */
export function harmlessJson(json: string): string {
  return json.replaceAll(/[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/gu, (one) =>
    Array.from(
      { length: one.length },
      (_, i) => `\\u${one.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

function numbered(line: string): string {
  return line.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`);
}
