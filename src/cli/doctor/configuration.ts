import type { Environment, InspectedConfig } from '../../config/config.ts';
import { removedSettings } from '../../config/removed-settings.ts';
import { count } from '../terminal/output.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

const CHECK = 'configuration';

export function checkConfiguration(config: InspectedConfig, env: Environment): Finding[] {
  const removed = removedSettings(env).map((line) => warning(CHECK, line, 'remove this setting'));
  return [...checkSettings(config), ...removed];
}

function checkSettings({ settings, named, problems }: InspectedConfig): Finding[] {
  if (problems.length === 0) {
    const file =
      settings.FLEETBOOK_CONFIG === undefined ? '' : `, with the file ${settings.FLEETBOOK_CONFIG}`;
    return [ok(CHECK, `${count(named.length, 'source')} configured${file}`)];
  }
  return problems.map((line) => {
    const file = settings.FLEETBOOK_CONFIG;
    const isOfFile = file !== undefined && line.startsWith(`${file}: `);
    return problem(CHECK, line, isOfFile ? `correct the file ${file}` : 'correct this setting');
  });
}
