/** Compares two OpenAPI documents. */
import { apiCompare } from 'api-smart-diff';

interface Document {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly parameters?: readonly object[] }>>>
  >;
}

/**
 * Returns the changes that may break a client. The library resolves references and classifies each change; this function
 * corrects three of its verdicts.
 */
export function breakingChanges(before: object, after: object): string[] {
  const { diffs } = apiCompare(withParameters(before as Document), withParameters(after as Document));
  return diffs
    .filter(({ type, path }) => {
      const last = path.at(-1);
      // Each use of a component is compared at its place: a response, a parameter.
      if (path[0] === 'components') return false;
      // To the library another type of a field in an answer, or null, is harmless.
      if (last === 'type' && path.includes('schema')) return true;
      // Generated clients name their functions after it.
      if (last === 'operationId') return true;
      return type === 'breaking';
    })
    .map(({ path, action, before, after }) => {
      const [from, to] = [before, after].map((value) => JSON.stringify(value)?.slice(0, 60));
      return `${path.join('/')}: ${action} ${from} → ${to}`;
    });
}

/** Gives each operation a list of parameters: the library overlooks a required one in a new list. */
function withParameters(document: Document): object {
  const paths = Object.entries(document.paths).map(([path, operations]) => {
    const complete = Object.entries(operations).map(([method, operation]) => {
      return [method, { ...operation, parameters: operation.parameters ?? [] }];
    });
    return [path, Object.fromEntries(complete)];
  });
  return { ...document, paths: Object.fromEntries(paths) };
}
