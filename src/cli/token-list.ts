import type { Environment } from '../config/source-config.ts';
import { listTokens, type TokenSummary } from '../db/reads/tokens.ts';
import { openReadOnly } from './open-read-only.ts';
import { existingOrganization } from './org-list.ts';
import { print, printJson, printText } from './print.ts';
import { ago, alignedTable } from './table.ts';

export async function listTokensCommand(
  env: Environment,
  options: { org?: string; json?: boolean },
): Promise<void> {
  await using register = openReadOnly(env);
  const { sql } = register;
  const organization = options.org === undefined ? undefined : await existingOrganization(sql, options.org);
  const tokens = await listTokens(sql, organization?.id);
  if (options.json) return printJson(tokens);
  if (tokens.length > 0) printText(tokenTable(tokens, new Date()));
  else
    print(
      `${organization ? `${organization.slug} has no token` : 'there is no token'}; make one: fleetbook token create --org ${organization?.slug ?? '<slug>'}`,
    );
}

export function tokenTable(tokens: readonly TokenSummary[], now: Date): string {
  return alignedTable(
    ['ID', 'NAME', 'ORGANIZATION', 'SCOPES', 'STATE', 'MADE', 'EXPIRES', 'LAST USED'],
    tokens.map(({ id, name, organization, scopes, state, createdAt, expiresAt, lastUsedAt }) => [
      String(id),
      name ?? '-',
      organization,
      scopes.join(' '),
      state,
      ago(createdAt, now),
      expiresAt?.replace('T', ' ').replace(/:\d\dZ$/, '') ?? 'never',
      lastUsedAt === null ? 'never' : ago(lastUsedAt, now),
    ]),
  );
}
