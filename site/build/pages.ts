/** Turns the repository's Markdown into pages of the site: titles, links between pages, one page for each adapter. Pure. */
import { posix } from 'node:path';
import { routeOf } from './sections.ts';

export interface SitePage {
  readonly route: string;
  readonly title: string;
  readonly description: string;
  /** Markdown without its title. */
  readonly body: string;
}

export interface Site {
  readonly pages: readonly SitePage[];
  /** Other files that pages link to. The site has a copy of each. */
  readonly files: ReadonlySet<string>;
}

export const ADAPTERS = 'docs/adapters.md';
export const FILES = 'files';

/**
 * Returns all pages of the site.
 * @param texts Markdown by its path from the repository's root
 * @param isFile whether the repository has a file at a path
 */
export function sitePages(texts: ReadonlyMap<string, string>, isFile: (path: string) => boolean): Site {
  const files = new Set<string>();
  const links: Links = { routes: routesOf(texts), isFile, files };
  const pages = [...texts].flatMap(([path, text]) => {
    const whole = path === 'README.md' ? quickStart(text) : text;
    const parts = path === ADAPTERS ? splitAdapters(whole) : [{ route: routeOf(path), text: whole }];
    return parts.map((part) => pageOf(path, part, links));
  });
  return { pages, files };
}

interface Part {
  readonly route: string;
  readonly text: string;
}

interface Links {
  /** Route by path, or by path and anchor, of pages. */
  readonly routes: ReadonlyMap<string, string>;
  readonly isFile: (path: string) => boolean;
  readonly files: Set<string>;
}

/** The introduction and the pictures of the README are on the start page. */
function quickStart(readme: string): string {
  const start = readme.indexOf('\n## Start\n');
  const end = readme.indexOf('\n## Documentation\n');
  if (start < 0 || end < start)
    throw new Error(
      'README.md must have the sections "Start" and "Documentation": the quick start of the site is between them',
    );
  return `# Quick start\n${readme.slice(start, end)}`;
}

/** Returns the overview of the adapters and one part for each adapter. */
export function splitAdapters(text: string): Part[] {
  const [head = '', ...sections] = text.split(/^(?=### )/m);
  const rows = text.split('\n').filter((line) => line.startsWith('| [') || line.startsWith('| adapter |'));
  const parts: Part[] = [];
  let overview = head;
  for (const section of sections) {
    const [heading = ''] = section.split('\n');
    const title = heading.slice('### '.length);
    const anchor = anchorOf(title);
    const row = rows.findIndex((line) => line.includes(`](#${anchor}) |`));
    if (row < 0) {
      overview += section;
      continue;
    }
    // The next heading of the second level begins another part of the overview.
    const next = section.indexOf('\n## ');
    const own = next < 0 ? section : section.slice(0, next + 1);
    if (next >= 0) overview += section.slice(next + 1);
    const columns = rows.slice(0, row).findLast((line) => line.startsWith('| adapter |')) ?? '';
    parts.push({
      route: `${routeOf(ADAPTERS)}/${anchor}`,
      text: `# ${nameOf(title, rows[row] ?? '')}\n\n${factsOf(columns, rows[row] ?? '')}\n${own.slice(heading.length)}`,
    });
  }
  return [{ route: routeOf(ADAPTERS), text: overview }, ...parts];
}

/** Returns the provider's name, which the second column has with its id, or the title of an adapter without an own provider. */
function nameOf(title: string, row: string): string {
  return /^\| \[[^\]]*\]\([^)]*\) \| (.*?) \(id \d+\) \|/.exec(row)?.[1] ?? title;
}

function factsOf(columns: string, row: string): string {
  const cells = (line: string) =>
    line
      .split(/(?<!\\)\|/)
      .slice(2, -1)
      .map((cell) => cell.trim());
  const values = cells(row);
  const lines = cells(columns).map((name, index) => `| ${name} | ${values[index] || 'none'} |`);
  return ['| | |', '|---|---|', ...lines].join('\n');
}

/** Anchors of headings as GitHub makes them. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\- _]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}

function routesOf(texts: ReadonlyMap<string, string>): Map<string, string> {
  const routes = new Map([...texts.keys()].map((path) => [path, routeOf(path)]));
  for (const { route } of splitAdapters(texts.get(ADAPTERS) ?? '').slice(1))
    routes.set(`${ADAPTERS}#${posix.basename(route)}`, route);
  return routes;
}

function pageOf(path: string, { route, text }: Part, links: Links): SitePage {
  const title = /^# (.*)$/m.exec(text)?.[1];
  if (title === undefined) throw new Error(`${path} must begin with a title: "# …"`);
  const body = outsideCode(text.replace(/^# .*\n/m, ''), (prose) =>
    linked(path, route, prose, links)
      // A page has one heading of the first level. Further ones group the sections after them.
      .replaceAll(/^# (.*)$/gm, '## $1'),
  );
  return { route, title: plain(title), description: descriptionOf(text), body };
}

function descriptionOf(text: string): string {
  const [, first = ''] = /^# .*\n+([^#|`<\n-][^\n]*(?:\n[^#|`<\n-][^\n]*)*)/m.exec(text) ?? [];
  const sentence = /^.*?[.:](?=\s|$)/.exec(plain(first).replaceAll('\n', ' '))?.[0] ?? '';
  return sentence.slice(0, 200);
}

/** Returns text without the marks of Markdown. */
function plain(text: string): string {
  return text.replaceAll(/\[([^[\]]*)\]\([^()]*\)/g, '$1').replaceAll(/[`*]/g, '');
}

/** Applies a change to everything but fenced code. */
export function outsideCode(text: string, change: (prose: string) => string): string {
  return text
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part) => (part.startsWith('```') ? part : change(part)))
    .join('');
}

function linked(path: string, route: string, prose: string, links: Links): string {
  const resolve = (target: string) => resolved(path, route, target, links);
  return prose
    .replaceAll(/!\[([^\]]*)\]\(([^)\s]+)\)/g, (_, alt: string, target: string) => {
      return `<img src="${resolve(target)}" alt="${alt.replaceAll('"', '&quot;')}">`;
    })
    .replaceAll(/(?<!!)\[((?:[^[\]]|\[[^[\]]*\])*)\]\(([^)\s]+)\)/g, (_, label: string, target: string) => {
      const address = resolve(target);
      return address === undefined ? label : `[${label}](${address})`;
    })
    .replaceAll(/\b(src|srcset)="([^"]+)"/g, (whole, name: string, target: string) =>
      target.startsWith('../') && target.includes(`/${FILES}/`) ? whole : `${name}="${resolve(target)}"`,
    );
}

/** Returns the address of a link's target, relative to the page. Undefined for a folder, which the site does not have. */
function resolved(path: string, route: string, target: string, links: Links): string | undefined {
  if (/^(https?|mailto):/.test(target)) return target;
  const [name = '', anchor] = target.split('#');
  const file = name === '' ? path : posix.join(posix.dirname(path), name).replace(/\/$/, '');
  const own = anchor === undefined ? undefined : links.routes.get(`${file}#${anchor}`);
  if (own !== undefined) return relative(route, own);
  const page = links.routes.get(file) ?? links.routes.get(`${file}/README.md`);
  if (page !== undefined) {
    const hash = anchor === undefined ? '' : `#${anchor}`;
    return page === route && anchor !== undefined ? hash : `${relative(route, page)}${hash}`;
  }
  if (!links.isFile(file)) return undefined;
  links.files.add(file);
  return relative(route, `${FILES}/${file}`).replace(/\/$/, '');
}

/** Each page is a folder, so that relative links work below any address. */
function relative(from: string, to: string): string {
  return `${posix.relative(from, to) || '.'}/`;
}
