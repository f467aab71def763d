import { SourceError } from '../source.ts';

/** Many times what any provider has; an upstream that always has one more page is broken. */
export const MOST_PAGES = 200;

/** The failure of a list that does not come to an end. */
export function endlessPages(path: string): SourceError {
  return new SourceError('invalid', `${path} has more than ${MOST_PAGES} pages`);
}

/** The failure of a list without any row. */
export function nothingListed(path: string): SourceError {
  return new SourceError('invalid', `${path} lists nothing; an empty answer is never taken for "all gone"`);
}

/** The failure of a page that is not the one that was asked for. */
export function anotherPage(path: string, page: number, said: string): SourceError {
  return new SourceError('invalid', `${path}: asked for page ${page}, ${said}`);
}
