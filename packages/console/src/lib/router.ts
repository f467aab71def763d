/** The address names the page and its filters, so that an operator can send it to a colleague. */
import { useEffect, useState } from 'preact/hooks';

const MOVED = 'fleetbook:moved';
/** Paths on this server that are not pages of the console. */
const NOT_CONSOLE = /^\/(?:queues|metrics|healthz|assets|api|login|logout)(?:\/|$)/;

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

/** Opens an address. @param replaces true to replace the current history entry, e.g. while an operator types */
export function navigate(address: string, replaces = false): void {
  history[replaces ? 'replaceState' : 'pushState'](null, '', address);
  dispatchEvent(new Event(MOVED));
}

/** Returns the current address with changed parameters. An empty value removes a parameter. Resets to the first page. */
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

/** Returns functions that read and set the filters in the address. */
export function filtersOf(place: Place) {
  return {
    value: (name: string) => place.query.get(name) ?? '',
    set: (changes: Readonly<Record<string, string>>) => navigate(addressWith(place, changes), true),
  };
}

/** Returns the query for a page of a list: the named parameters of the address, and the number of rows. */
export function queryOf(place: Place, names: readonly string[], limit: number): URLSearchParams {
  const query = new URLSearchParams({ limit: String(limit) });
  for (const name of names) {
    const value = place.query.get(name);
    if (value !== null) query.set(name, value);
  }
  return query;
}

/** Handles clicks on links to pages of the console, so that the browser does not reload. */
export function followLinks(): void {
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (link === null || link.target !== '' || link.origin !== location.origin) return;
    if (NOT_CONSOLE.test(link.pathname) || link.hash !== '') return;
    event.preventDefault();
    const isNewPage = link.pathname !== location.pathname;
    navigate(link.pathname + link.search);
    if (isNewPage) scrollTo(0, 0);
  });
}
