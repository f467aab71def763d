import type { Command } from 'commander';
import type { Environment } from '../../config/config.ts';
import { administration } from '../../db/administration.ts';
import { listTokens, type TokenSummary } from '../../db/tokens.ts';
import { SCOPES, type Scope } from '../../domain/scope.ts';
import { readId } from '../terminal/arguments.ts';
import {
  add,
  addChange,
  type Changing,
  type ChangingOf,
  type Env,
  type OfOrganization,
} from '../terminal/command-parts.ts';
import { CommandFailure, UsageFailure } from '../terminal/failure.ts';
import { openWriter } from '../terminal/open.ts';
import { openDatabase } from '../terminal/open-database.ts';
import { print, printAside, printJson, printText } from '../terminal/print.ts';
import { ago, alignedTable } from '../terminal/table.ts';
import { expiry, readExpiry, readGrace, readTokenName } from '../terminal/token-terms.ts';
import { existingOrganization } from './org.ts';

export function define(program: Command, env: Env): void {
  const token = program.command('token').description('API tokens');
  const ID = ['<id>', 'number that `token list` shows and `token create` printed'] as const;
  add(token, 'list', 'show tokens: name, organization, scopes, expiry and last use')
    .option('--org <slug>', 'only tokens of this organization')
    .action((options) => listTokensCommand(env(), options));
  addChange(token, 'create', 'create a token and print it; it cannot be shown again')
    .requiredOption('--org <slug>', 'organization that gets the token')
    .option('--name <name>', 'what uses the token, e.g. billing; shown in lists and in the audit log')
    .option('--scope <scope...>', 'machines:read, clusters:read (default: both)')
    .option('--expires <when>', 'e.g. 90d, 12h or 2027-01-31 (default: never)')
    .action((options) => createTokenCommand(env(), options));
  addChange(token, 'revoke', 'revoke a token; readers reject it within a second')
    .argument(...ID)
    .action((id: string, options) => revokeTokenCommand(env(), id, options));
  addChange(token, 'rotate', 'create a token that replaces another one, and print it')
    .argument(...ID)
    .option('--grace <span>', 'how long the old token stays valid, e.g. 1h (default: no time)')
    .action((id: string, options) => rotateTokenCommand(env(), id, options));
}

export async function listTokensCommand(env: Environment, options: Partial<OfOrganization>): Promise<void> {
  await using database = openDatabase(env);
  const { sql } = database;
  const organization = options.org === undefined ? undefined : await existingOrganization(sql, options.org);
  const tokens = await listTokens(sql, organization?.id);
  if (options.json) return printJson(tokens);
  if (tokens.length > 0) printText(tokenTable(tokens, new Date()));
  else
    print(
      `${organization ? `${organization.slug} has no token` : 'there is no token'}; create one: fleetbook token create --org ${organization?.slug ?? '<slug>'}`,
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
  options: ChangingOf & { name?: string; scope?: string[]; expires?: string },
): Promise<void> {
  const scopes = readScopes(options.scope);
  const name = options.name === undefined ? undefined : readTokenName(options.name);
  const expiresAt = options.expires === undefined ? undefined : readExpiry(options.expires, new Date());
  await using writer = await openWriter(env, options);
  const organization = await existingOrganization(writer.store.sql, options.org);
  const { id, token } = await administration(writer.store.db, writer.by).createToken(organization, {
    name,
    scopes,
    expiresAt,
  });
  const published = await writer.publish();
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
    `token ${id}${name === undefined ? '' : ` (${name})`} of ${organization.slug}, ${scopes.join(' ')}, ${expiry(until)}. It cannot be shown again; revoke it with: fleetbook token revoke ${id}`,
  );
}

export async function revokeTokenCommand(env: Environment, text: string, options: Changing): Promise<void> {
  const id = readTokenId(text);
  await using writer = await openWriter(env, options);
  const outcome = await administration(writer.store.db, writer.by).revokeToken(id);
  if (outcome === undefined) throw new CommandFailure(unknownToken(id));
  const published = await writer.publish();
  if (options.json) printJson({ id, revoked: true, wasRevoked: outcome === 'was revoked', published });
  else if (outcome === 'was revoked') print(`token ${id} is already revoked`);
  else print(`token ${id} is revoked${unlessPublished(published)}`);
}

export async function rotateTokenCommand(
  env: Environment,
  text: string,
  options: Changing & { grace?: string },
): Promise<void> {
  const id = readTokenId(text);
  const graceMs = options.grace === undefined ? 0 : readGrace(options.grace);
  await using writer = await openWriter(env, options);
  const rotated = await administration(writer.store.db, writer.by).rotateToken(id, graceMs);
  if (rotated === 'unknown') throw new CommandFailure(unknownToken(id));
  if (typeof rotated === 'string') {
    throw new CommandFailure(
      `token ${id} is ${rotated} and cannot be replaced; create a token: fleetbook token create`,
    );
  }
  const published = await writer.publish();
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
    oldExpiresAt === null ? `is revoked${unlessPublished(published)}` : `is valid until ${oldExpiresAt}`;
  printAside(
    `token ${made.id} of ${made.organization}, ${made.scopes.join(' ')}, ${expiry(made.expiresAt)}, replaces token ${id}, which ${fate}. It cannot be shown again`,
  );
}

const readTokenId = (text: string) =>
  readId(text, 'token id', '`token list` shows and `token create` printed, not the token');
const unknownToken = (id: number) => `there is no token ${id}; see: fleetbook token list`;
const unlessPublished = (published: boolean) =>
  published ? '' : '; the cache cannot be reached, so readers may accept it for up to 10 seconds';

function readScopes(given: readonly string[] | undefined): readonly Scope[] {
  if (!given) return SCOPES;
  const scopes = given.flatMap((text) => text.split(','));
  return scopes.map((text) => {
    const scope = SCOPES.find((known) => known === text);
    if (!scope) throw new UsageFailure(`"${text}" is not a scope; use ${SCOPES.join(' or ')}`);
    return scope;
  });
}
