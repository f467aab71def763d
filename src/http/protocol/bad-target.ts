/** Request targets that the router cannot decode. */

/**
 * The same target with every byte sequence that is percent-encoded properly but is not UTF-8 replaced by U+FFFD, so
 * that it can be routed like any other: no slug contains that, and the answer is the 404 of every unknown slug.
 * Undefined where nothing can be mended: then the percent-encoding itself is broken.
 */
export function mendedTarget(target: string): string | undefined {
  const end = target.search(/[?#]/);
  const path = end === -1 ? target : target.slice(0, end);
  if (/%(?![0-9a-f]{2})/i.test(path)) return undefined;
  const mended = path.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => {
    try {
      decodeURIComponent(run);
      return run;
    } catch {
      return encodeURIComponent(Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'));
    }
  });
  return mended === path ? undefined : mended + target.slice(path.length);
}
