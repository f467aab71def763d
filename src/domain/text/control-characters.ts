/** Escapes control characters and those that change the direction of text: foreign text must not control a terminal. */

/** Returns one line. Each run of white space becomes one space. */
export function harmless(text: string): string {
  return escaped(text.replaceAll(/\s+/g, ' ').trim());
}

/** Keeps line breaks and indents. */
export function harmlessLines(text: string): string {
  return text.split('\n').map(escaped).join('\n');
}

/** Escapes the characters within a JSON text. Its value stays the same. */
export function harmlessJson(json: string): string {
  return json.replaceAll(/[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}]/gu, (one) =>
    Array.from(
      { length: one.length },
      (_, i) => `\\u${one.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

function escaped(line: string): string {
  return line.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`);
}
