/** Parts of the pages about adapters. */

import type { CredentialKind } from '../../src/sources/credentials/types.ts';
import { descriptionOf } from '../../src/sources/schema/options.ts';
import type { SourceOptions } from '../../src/sources/source.ts';

export const CREDENTIALS: Readonly<Record<CredentialKind, string>> = {
  none: 'none',
  bearer: 'a bearer token',
  'optional-bearer': 'none, or a bearer token',
  basic: '`user:password` (HTTP Basic)',
  'basic-or-bearer': '`user:password` (HTTP Basic), or an API token (bearer)',
  'x-auth-token': 'a token, sent as `X-Auth-Token`',
  aivenv1: 'a token, sent as `aivenv1`',
  'exo2-hmac-sha256': '`key:secret` of an API key, which signs each request',
  'x-goog-api-key': 'an API key, sent as `X-Goog-Api-Key`',
};

/** Returns a row for each option: its name, its meaning after a prefix, and whether it is required. */
export function optionRows(
  options: SourceOptions | undefined,
  rename: (name: string) => string,
  prefix: (name: string) => string = () => '',
): string[] {
  return Object.entries(options?.shape ?? {}).map(([name, option]) =>
    row([
      rename(name),
      prefix(name) + descriptionOf(option),
      option.safeParse(undefined).success ? 'optional' : 'required',
    ]),
  );
}

export function table(head: readonly string[], rows: readonly string[]): string {
  return [row(head), `|${'---|'.repeat(head.length)}`, ...rows].join('\n');
}

export function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
