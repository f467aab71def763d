/** The address names the page and its filters, so that an operator can send it to a colleague. */
import { useEffect, useState } from 'preact/hooks';

const MOVED = 'fleetbook:moved';
/** Paths of this server that are no pages of the console. */
const ELSEWHERE = /^\/(?:queues|metrics|healthz|assets|api|login|logout)(?:\/|$)/;

export interface Place {
  readonly path: string;
  readonly query: URLSearchParams;
}

const here = (): Place => ({ path: location.pathname, query: new URLSearchParams(location.search) });

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const moved = () => setPlace(here());
    addEventListener('popstate', moved);
    addEventListener(MOVED, moved);
    return () => {
      removeEventListener('popstate', moved);
      removeEventListener(MOVED, moved);
    };
  }, []);
  return place;
}

/** @param replaces the entry in the browser's history, e.g. while an operator types */
export function navigate(address: string, replaces = false): void {
  history[replaces ? 'replaceState' : 'pushState'](null, '', address);
  dispatchEvent(new Event(MOVED));
}

/** The current address with other parameters. An empty value removes one. Another filter shows the first page. */
export function addressWith(place: Place, changes: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(place.query);
  if (!('offset' in changes)) query.delete('offset');
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return text === '' ? place.path : `${place.path}?${text}`;
}

/** Reads the filters in the address, and sets them. */
export function filtersOf(place: Place) {
  return {
    value: (name: string) => place.query.get(name) ?? '',
    set: (changes: Readonly<Record<string, string>>) => navigate(addressWith(place, changes), true),
  };
}

/** The query for a page of a list: the named parameters of the address, and the number of rows. */
export function queryOf(place: Place, names: readonly string[], limit: number): URLSearchParams {
  const query = new URLSearchParams({ limit: String(limit) });
  for (const name of names) {
    const value = place.query.get(name);
    if (value !== null) query.set(name, value);
  }
  return query;
}

/** Makes links to pages of the console change the page in place. */
export function followLinks(): void {
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (link === null || link.target !== '' || link.origin !== location.origin) return;
    if (ELSEWHERE.test(link.pathname) || link.hash !== '') return;
    event.preventDefault();
    const isNewPage = link.pathname !== location.pathname;
    navigate(link.pathname + link.search);
    if (isNewPage) scrollTo(0, 0);
  });
}
