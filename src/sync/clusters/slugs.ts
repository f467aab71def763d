import slugify from '@sindresorhus/slugify';

export interface SlugRow {
  readonly organizationId: number;
  readonly sourceKey: string;
  readonly name: string;
  readonly given: string | null;
  readonly old: string | null;
}

/** Returns the slug of a name: ASCII, lower case, words joined by `-`; `cluster` if nothing is left. */
export function slugOf(name: string): string {
  return slugify(name, { decamelize: false }) || 'cluster';
}

/** Returns the wanted slug, or with the first free suffix `-2`, `-3`, … Deterministic for a fixed order of names. */
export function freeSlug(wanted: string, taken: ReadonlySet<string>): string {
  if (!taken.has(wanted)) return wanted;
  for (let n = 2; ; n++) {
    const candidate = `${wanted}-${n}`;
    if (!taken.has(candidate)) return candidate;
  }
}

/**
 * Returns a slug for every cluster of a batch: the source's slug, else the old one (also after a rename), else one derived
 * from the name. If two clusters want one slug, the order is: old, given, derived, then the fixed order of rows. The other
 * cluster gets a suffix, which it keeps.
 */
export function assignSlugs(
  rows: readonly SlugRow[],
  taken: readonly { organizationId: number; slug: string }[],
): { organizationId: number; sourceKey: string; slug: string }[] {
  const used = new Map<number, Set<string>>();
  const usedIn = (organizationId: number): Set<string> => {
    const slugs = used.get(organizationId) ?? new Set();
    used.set(organizationId, slugs);
    return slugs;
  };
  for (const { organizationId, slug } of taken) usedIn(organizationId).add(slug);

  const assigned = new Map<SlugRow, string>();
  const assign = (row: SlugRow, wanted: string) => {
    const slugs = usedIn(row.organizationId);
    const slug = freeSlug(wanted, slugs);
    slugs.add(slug);
    assigned.set(row, slug);
  };
  const hasItsSlug = (row: SlugRow) => row.old !== null && (row.given === null || row.given === row.old);
  for (const row of rows) if (hasItsSlug(row)) assign(row, row.old ?? '');
  for (const row of rows) {
    if (assigned.has(row) || row.given === null) continue;
    const { given, old } = row;
    const slugs = usedIn(row.organizationId);
    const stays = old !== null && isSuffixed(old, given) && slugs.has(given) && !slugs.has(old);
    assign(row, stays ? old : given);
  }
  for (const row of rows) if (!assigned.has(row)) assign(row, slugOf(row.name));

  return rows.map((row) => ({
    organizationId: row.organizationId,
    sourceKey: row.sourceKey,
    slug: assigned.get(row) ?? '',
  }));
}

/** Returns true if `freeSlug` could have made `slug` from `wanted`. */
function isSuffixed(slug: string, wanted: string): boolean {
  return slug.startsWith(`${wanted}-`) && /^[1-9]\d*$/.test(slug.slice(wanted.length + 1));
}
