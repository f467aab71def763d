/** `node release/licences.ts`: each package of a release has a licence that permits its use in a program under Apache-2.0. */
import { type Component, components } from './components.ts';

/** SPDX identifiers. A licence that is not listed needs a decision, and then a line here. */
export const ALLOWED: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'PostgreSQL',
  'Unlicense',
]);

/** Returns one line for each package whose licence is not allowed. A choice (`A OR B`) needs one allowed licence. */
export function notAllowed(found: readonly Component[]): string[] {
  return found
    .filter(
      ({ license }) =>
        !(license ?? '')
          .replaceAll(/[()]/g, '')
          .split(' OR ')
          .some((each) => ALLOWED.has(each)),
    )
    .map(
      ({ name, version, license, path }) =>
        `${name} ${version} (${path}): ${license ?? 'no licence'} is not allowed; replace the package, or add the licence to release/licences.ts`,
    );
}

if (import.meta.main) {
  const found = await components();
  const problems = notAllowed(found);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.stdout.write(`${found.length} packages, ${problems.length} without an allowed licence\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
