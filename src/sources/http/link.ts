/**
 * The target of `rel="next"` in a `Link` header (RFC 8288): absolute, or relative to the address of the answer. Undefined
 * when there is none.
 */
export function nextLink(header: string | null): string | undefined {
  const link =
    /\s*<([^>]*)>((?:\s*;\s*[\w!#$&+.^`|~*-]+\s*(?:=\s*(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)\s*(?:,|$)/gy;
  for (const [, target, parameters = ''] of (header ?? '').matchAll(link)) {
    const rel = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]+))/i.exec(parameters);
    const relations = (rel?.[1] ?? rel?.[2] ?? '').toLowerCase().split(/\s+/);
    if (target !== undefined && relations.includes('next')) return target;
  }
  return undefined;
}
