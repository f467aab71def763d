/** The sections of the documentation site: a page of the repository belongs to exactly one of them. Pure. */

export interface Section {
  readonly label: string;
  /** Paths from the repository's root, in the order of the menu. `folder/*` stands for all other pages of a folder. */
  readonly pages: readonly string[];
  /** A section with many pages is closed until a reader opens it. */
  readonly collapsed?: boolean;
}

/** Pages without a place in `docs`, and pages that are not in every release, are listed too: a missing page has no entry. */
export const SECTIONS: readonly Section[] = [
  {
    label: 'Start',
    pages: ['README.md', 'docs/demo.md', 'docs/demo/*', 'docs/install.md', 'docs/comparison.md'],
  },
  {
    label: 'Read the API',
    pages: [
      'docs/api.md',
      'docs/client.md',
      'docs/mcp.md',
      'docs/exports.md',
      'docs/embedding.md',
      'examples/README.md',
      'examples/*',
    ],
  },
  {
    label: 'Configure',
    pages: ['docs/configuration.md', 'docs/adapters.md'],
  },
  {
    label: 'Operate',
    pages: [
      'docs/commands.md',
      'docs/console.md',
      'docs/price-book.md',
      'docs/guards.md',
      'docs/notifications.md',
      'docs/runbook.md',
      'docs/kubernetes.md',
      'deploy/helm/fleetbook/README.md',
      'docs/servers.md',
      'docs/releases.md',
      'CHANGELOG.md',
    ],
  },
  {
    label: 'Security',
    pages: ['docs/hardening.md', 'docs/privacy.md', 'SECURITY.md'],
  },
  {
    label: 'Reliability and speed',
    pages: ['docs/reliability.md', 'docs/performance.md'],
  },
  {
    label: 'Develop',
    pages: [
      'docs/adding-a-provider.md',
      'CONTRIBUTING.md',
      'docs/development.md',
      'docs/ARCHITECTURE.md',
      'docs/glossary.md',
      'AGENTS.md',
      'GOVERNANCE.md',
      'CODE_OF_CONDUCT.md',
    ],
  },
  { label: 'Decisions', pages: ['docs/decisions/README.md', 'docs/decisions/*'], collapsed: true },
];

export interface Placed {
  readonly label: string;
  readonly collapsed: boolean;
  readonly pages: readonly string[];
}

/**
 * Returns the sections with the pages that exist.
 * @param existing paths of all pages from the repository's root
 * @throws Error if a page of `docs` is in no section or in two
 */
export function placed(existing: readonly string[], sections: readonly Section[] = SECTIONS): Placed[] {
  const named = new Set(sections.flatMap(({ pages }) => pages));
  const result = sections.map(({ label, pages, collapsed = false }) => ({
    label,
    collapsed,
    pages: pages.flatMap((page) => {
      if (!page.endsWith('/*')) return existing.includes(page) ? [page] : [];
      const folder = page.slice(0, -1);
      return existing.filter((each) => each.startsWith(folder) && !named.has(each)).sort();
    }),
  }));
  const all = result.flatMap(({ pages }) => pages);
  const twice = all.find((page, index) => all.indexOf(page) !== index);
  if (twice !== undefined)
    throw new Error(`${twice} is in two sections; remove one in site/build/sections.ts`);
  const lost = existing.filter((page) => page.startsWith('docs/') && !all.includes(page));
  if (lost.length > 0)
    throw new Error(`${lost.join(', ')}: in no section; add the page to a section in site/build/sections.ts`);
  return result.filter(({ pages }) => pages.length > 0);
}

/** Returns the path of a page on the site, without slashes at its ends: `docs/decisions/README.md` → `decisions`. */
export function routeOf(page: string): string {
  if (page === 'README.md') return 'quick-start';
  return page
    .replace(/^docs\//, '')
    .replace(/(^|\/)README\.md$/, '')
    .replace(/\.md$/, '')
    .toLowerCase();
}
