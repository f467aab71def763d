/** Which page is shown is the address, filters included: it can be sent to a colleague. */
import { useEffect, useState } from 'preact/hooks';

const MOVED = 'fleetbook:moved';
/** Addresses of this listener that are no pages of the console. */
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

/** @param replaces the entry in the browser's history, e.g. while somebody types */
export function navigate(address: string, replaces = false): void {
  history[replaces ? 'replaceState' : 'pushState'](null, '', address);
  dispatchEvent(new Event(MOVED));
}

/** The present address with other parameters; an empty value takes one out. A filter begins again at the first page. */
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

/** The parameters of the present address that a list is asked for by, with the number of rows of a page. */
export function queryOf(place: Place, names: readonly string[], limit: number): URLSearchParams {
  const query = new URLSearchParams({ limit: String(limit) });
  for (const name of names) {
    const value = place.query.get(name);
    if (value !== null) query.set(name, value);
  }
  return query;
}

/** Has links to the console's own pages change the page in place. */
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
