/**
 * Checks a built site: each link and anchor inside it has a target, and no page or style sheet loads anything from another
 * server.
 */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { Parser } from 'htmlparser2';

/** Elements whose address a browser loads by itself. `link` includes style sheets and icons. */
const LOADED = new Set([
  'img',
  'script',
  'source',
  'link',
  'iframe',
  'video',
  'audio',
  'embed',
  'object',
  'image',
]);
/** Addresses that are stated and not loaded. */
const STATED = new Set(['canonical', 'alternate', 'sitemap']);

/**
 * @param folder the built site
 * @param base address below which it is served
 */
export function checkSite(folder, base = '/') {
  const problems = [];
  const documents = new Map(
    globSync('**/*.html', { cwd: folder }).map((path) => [
      path,
      read(readFileSync(join(folder, path), 'utf8')),
    ]),
  );
  let links = 0;
  for (const [path, { targets }] of documents) {
    for (const { element, address, rel } of targets) {
      links++;
      const problem = problemOf(path, element, address, rel);
      if (problem !== undefined) problems.push(`${path}: ${problem}`);
    }
  }
  for (const path of globSync('**/*.css', { cwd: folder }))
    for (const [found] of readFileSync(join(folder, path), 'utf8').matchAll(
      /(?:url\(\s*["']?|@import\s*["'])(?:https?:)?\/\/[^)"']*/g,
    ))
      problems.push(`${path}: loads ${found}`);
  return { pages: documents.size, links, problems };

  function problemOf(page, element, address, rel) {
    if (/^(data:|mailto:|#$)/.test(address)) return undefined;
    if (/^([a-z]+:)?\/\//i.test(address))
      return LOADED.has(element) && !STATED.has(rel) ? `loads ${address} from another server` : undefined;
    const [path = '', hash] = address.replace(/\?[^#]*/, '').split('#');
    const file = fileOf(page, decodeURIComponent(path));
    if (file === undefined) return `${address} has no target`;
    if (hash && file.endsWith('.html') && !documents.get(file)?.ids.has(decodeURIComponent(hash)))
      return `${address} names a heading that does not exist`;
    return undefined;
  }

  function fileOf(page, path) {
    if (path === '') return page;
    const prefix = base.replace(/\/$/, '');
    if (path.startsWith('/') && prefix !== '' && path !== prefix && !path.startsWith(`${prefix}/`))
      return undefined;
    const from = path.startsWith('/') ? path.slice(prefix.length + 1) : posix.join(posix.dirname(page), path);
    const clean = from.replace(/\/$/, '');
    return [clean, posix.join(clean, 'index.html')].find((each) => {
      return existsSync(join(folder, each)) && statSync(join(folder, each)).isFile();
    });
  }
}

/** Returns the addresses and ids of a page. */
function read(html) {
  const targets = [];
  const ids = new Set(['top']);
  const parser = new Parser({
    onopentag(element, attributes) {
      if (attributes.id) ids.add(attributes.id);
      if (element === 'a' && attributes.name) ids.add(attributes.name);
      for (const name of ['href', 'src', 'poster', 'data'])
        if (attributes[name] !== undefined && !(name === 'data' && element !== 'object'))
          targets.push({ element, address: attributes[name], rel: attributes.rel });
      for (const each of (attributes.srcset ?? '').split(',').filter((text) => text.trim() !== ''))
        targets.push({ element, address: each.trim().split(/\s+/)[0] });
    },
  });
  parser.end(html);
  return { targets, ids };
}
