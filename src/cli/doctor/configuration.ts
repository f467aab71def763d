import type { InspectedConfig } from '../../config/config.ts';
import { count } from '../table.ts';
import { type Finding, ok, problem } from './finding.ts';

const CHECK = 'configuration';

/** Everything that is wrong with settings and sources, each on its own. */
export function checkConfiguration({ settings, named, problems }: InspectedConfig): Finding[] {
  if (problems.length === 0) {
    const file =
      settings.FLEETBOOK_CONFIG === undefined ? '' : `, with the file ${settings.FLEETBOOK_CONFIG}`;
    return [ok(CHECK, `${count(named.length, 'source')} configured${file}`)];
  }
  // Each line names its setting and the values that are accepted.
  return problems.map((line) => {
    const file = settings.FLEETBOOK_CONFIG;
    const isOfFile = file !== undefined && line.startsWith(`${file}: `);
    return problem(CHECK, line, isOfFile ? `correct the file ${file}` : 'correct this setting');
  });
}
