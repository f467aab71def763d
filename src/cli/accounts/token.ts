import { publishNow } from '../../app/actions/publish.ts';
import type { Environment } from '../../config/config.ts';
import { administration } from '../../db/administration.ts';
import { listTokens, type TokenSummary } from '../../db/tokens.ts';
import { SCOPES, type Scope } from '../../domain/scope.ts';
import { type DeciderOptions, decider, readId } from '../terminal/arguments.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { openWriter } from '../terminal/open.ts';
import { openDatabase } from '../terminal/open-database.ts';
import { print, printAside, printJson, printText } from '../terminal/print.ts';
import { ago, alignedTable } from '../terminal/table.ts';
import { expiry, readExpiry, readGrace, readTokenName } from '../terminal/token-terms.ts';
import { existingOrganization } from './org.ts';

export async function listTokensCommand(
  env: Environment,
  options: { org?: string; json?: boolean },
): Promise<void> {
  await using register = openDatabase(env);
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

export async function createTokenCommand(
  env: Environment,
  options: DeciderOptions & {
    org: string;
    name?: string;
    scope?: string[];
    expires?: string;
    json?: boolean;
  },
): Promise<void> {
  const scopes = readScopes(options.scope);
  const name = options.name === undefined ? undefined : readTokenName(options.name);
  const expiresAt = options.expires === undefined ? undefined : readExpiry(options.expires, new Date());
  const { config, writer } = openWriter(env);
  await using _ = writer;
  const by = decider(config, options);
  const organization = await existingOrganization(writer.store.sql, options.org);
  const { id, token } = await administration(writer.store.db, by).createToken(organization, {
    name,
    scopes,
    expiresAt,
  });
  const published = await publishNow(writer);
  const until = expiresAt?.toISOString() ?? null;
  if (options.json) {
    return printJson({
      id,
      token,
      organization: organization.slug,
      name: name ?? null,
      scopes,
      expiresAt: until,
      published,
    });
  }
  print(token);
  printAside(
    `token ${id}${name === undefined ? '' : ` (${name})`} of ${organization.slug}, ${scopes.join(' ')}, ${expiry(until)}. It is shown once; revoke it with: fleetbook token revoke ${id}`,
  );
}

export async function revokeTokenCommand(
  env: Environment,
  text: string,
  options: DeciderOptions & { json?: boolean },
): Promise<void> {
  const id = readTokenId(text);
  const { config, writer } = openWriter(env);
  await using _ = writer;
  const by = decider(config, options);
  const outcome = await administration(writer.store.db, by).revokeToken(id);
  if (outcome === undefined) throw new CommandFailure(unknownToken(id));
  const published = await publishNow(writer);
  if (options.json) printJson({ id, revoked: true, wasRevoked: outcome === 'was revoked', published });
  else if (outcome === 'was revoked') print(`token ${id} was revoked already`);
  else print(`token ${id} is revoked${unlessPublished(published)}`);
}

export async function rotateTokenCommand(
  env: Environment,
  text: string,
  options: DeciderOptions & { grace?: string; json?: boolean },
): Promise<void> {
  const id = readTokenId(text);
  const graceMs = options.grace === undefined ? 0 : readGrace(options.grace);
  const { config, writer } = openWriter(env);
  await using _ = writer;
  const by = decider(config, options);
  const rotated = await administration(writer.store.db, by).rotateToken(id, graceMs);
  if (rotated === 'unknown') throw new CommandFailure(unknownToken(id));
  if (typeof rotated === 'string') {
    throw new CommandFailure(
      `token ${id} is ${rotated}, so nothing takes its place; make one: fleetbook token create`,
    );
  }
  const published = await publishNow(writer);
  const { oldExpiresAt, ...made } = rotated;
  if (options.json) {
    return printJson({
      ...made,
      old: { id, revoked: oldExpiresAt === null, expiresAt: oldExpiresAt },
      published,
    });
  }
  print(made.token);
  const fate =
    oldExpiresAt === null ? `is revoked${unlessPublished(published)}` : `is good until ${oldExpiresAt}`;
  printAside(
    `token ${made.id} of ${made.organization}, ${made.scopes.join(' ')}, ${expiry(made.expiresAt)}, takes the place of token ${id}, which ${fate}. It is shown once`,
  );
}

const readTokenId = (text: string) =>
  readId(text, 'token id', '`token list` shows and `token create` printed, not the token');
const unknownToken = (id: number) => `there is no token ${id}; see fleetbook token list`;
const unlessPublished = (published: boolean) =>
  published ? '' : '; the cache is away, so readers may accept it for up to 10 seconds';

/** @throws UsageFailure for an unknown scope */
export function readScopes(given: readonly string[] | undefined): readonly Scope[] {
  if (!given) return SCOPES;
  const scopes = given.flatMap((text) => text.split(','));
  return scopes.map((text) => {
    const scope = SCOPES.find((known) => known === text);
    if (!scope) throw new UsageFailure(`"${text}" is no scope; use ${SCOPES.join(' or ')}`);
    return scope;
  });
}
