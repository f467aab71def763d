/** Returns a page in the provider's format; undefined if the provider rejects the request. */
export type Paged = (rows: readonly unknown[], query: URLSearchParams) => object | undefined;

/** Returns an integer of the query, or the fallback if it is absent; undefined outside `from` to `to`. */
function whole(query: URLSearchParams, name: string, fallback: number, from: number, to: number) {
  const given = query.get(name);
  if (given === null) return fallback;
  const value = /^\d{1,9}$/.test(given) ? Number(given) : Number.NaN;
  return value >= from && value <= to ? value : undefined;
}

/** Hetzner: `page` and `per_page` (25, at most 50); a page after the last one is empty. */
export function hetznerPages(key: string): Paged {
  return (rows, query) => {
    const page = whole(query, 'page', 1, 1, 999_999_999);
    const perPage = whole(query, 'per_page', 25, 1, 50);
    if (page === undefined || perPage === undefined) return undefined;
    const last = Math.max(1, Math.ceil(rows.length / perPage));
    return {
      [key]: rows.slice((page - 1) * perPage, page * perPage),
      meta: {
        pagination: {
          page,
          per_page: perPage,
          previous_page: page > 1 ? Math.min(page - 1, last) : null,
          next_page: page < last ? page + 1 : null,
          last_page: last,
          total_entries: rows.length,
        },
      },
    };
  };
}

/** Linode: `page` and `page_size` (100, from 25 to 500); a page after the last one is rejected. */
export const linodePages: Paged = (rows, query) => {
  const size = whole(query, 'page_size', 100, 25, 500);
  if (size === undefined) return undefined;
  const pages = Math.max(1, Math.ceil(rows.length / size));
  const page = whole(query, 'page', 1, 1, pages);
  if (page === undefined) return undefined;
  return { data: rows.slice((page - 1) * size, page * size), page, pages, results: rows.length };
};
