import type { Command } from 'commander';
import { newToken, rotation } from '../../app/actions/inputs.ts';
import type { CommandContext } from '../../app/feature.ts';
import type { Environment } from '../../config/config.ts';
import { listTokens, type TokenSummary } from '../../db/tokens.ts';
import { SCOPES } from '../../domain/scope.ts';
import { CommandFailure } from '../terminal/failure.ts';
import { existingOrganization } from '../terminal/find-named.ts';
import { openDatabase, openWriter } from '../terminal/open.ts';
import {
  add,
  addChange,
  type Changing,
  type ChangingOf,
  EXPIRES,
  expiryText,
  GRACE,
  type OfOrganization,
  readArguments,
  readId,
} from '../terminal/options.ts';
import { ago, alignedTable, print, printAside, printJson, show } from '../terminal/output.ts';

export function define(program: Command, { env }: CommandContext): void {
  const token = program.command('token').description('API tokens of organizations');
  const ID = ['<id>', 'number that `token list` shows and `token create` printed'] as const;
  add(token, 'list', 'show tokens: name, organization, scopes, expiry and last use')
    .option('--org <slug>', 'only tokens of this organization')
    .action((options) => listTokensCommand(env(), options));
  addChange(token, 'create', 'create a token and print it; it cannot be shown again')
    .requiredOption('--org <slug>', 'organization that gets the token')
    .option('--name <name>', 'what uses the token, e.g. billing; shown in lists and in the audit log')
    .option('--scope <scope...>', 'machines:read, clusters:read (default: both)')
    .option(...EXPIRES)
    .action((options) => createToken(env(), options));
  addChange(token, 'delete', 'revoke a token; readers reject it within two seconds')
    .argument(...ID)
    .action((id: string, options) => revokeToken(env(), id, options));
  addChange(token, 'rotate', 'create a token that replaces another one, and print it')
    .argument(...ID)
    .option(...GRACE)
    .action((id: string, options) => rotateToken(env(), id, options));
}

export async function listTokensCommand(env: Environment, options: Partial<OfOrganization>): Promise<void> {
  await using database = openDatabase(env);
  const { db } = database;
  const organization = options.org === undefined ? undefined : await existingOrganization(db, options.org);
  const tokens = await listTokens(db, organization?.id);
  show(options, tokens, () =>
    tokens.length > 0
      ? tokenTable(tokens, new Date())
      : `${organization ? `${organization.slug} has no token` : 'there is no token'}; create one: fleetbook token create --org ${organization?.slug ?? '<slug>'}`,
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

async function createToken(
  env: Environment,
  options: ChangingOf & { name?: string; scope?: string[]; expires?: string },
): Promise<void> {
  const given = { ...options, scopes: options.scope?.flatMap((text) => text.split(',')) ?? SCOPES };
  const terms = readArguments(newToken, given, { scopes: '--scope' });
  await using writer = await openWriter(env, options);
  const organization = await existingOrganization(writer.store.db, options.org);
  const { id, token } = await writer.changes.createToken(organization, terms);
  const published = await writer.publish();
  const { slug } = organization;
  const { name, scopes, expires } = terms;
  const expiresAt = expires?.toISOString() ?? null;
  if (options.json)
    return printJson({ id, token, organization: slug, name: name ?? null, scopes, expiresAt, published });
  print(token);
  printAside(
    `token ${id}${name === undefined ? '' : ` (${name})`} of ${slug}, ${scopes.join(' ')}, ${expiryText(expiresAt)}. It cannot be shown again; revoke it with: fleetbook token delete ${id}`,
  );
}

async function revokeToken(env: Environment, text: string, options: Changing): Promise<void> {
  const id = readTokenId(text);
  await using writer = await openWriter(env, options);
  const outcome = await writer.changes.revokeToken(id);
  if (outcome === undefined) throw new CommandFailure(unknownToken(id));
  const published = await writer.publish();
  const wasRevoked = outcome === 'was revoked';
  show(options, { id, revoked: true, wasRevoked, published }, () =>
    wasRevoked ? `token ${id} is already revoked` : `token ${id} is revoked${unlessPublished(published)}`,
  );
}

async function rotateToken(
  env: Environment,
  text: string,
  options: Changing & { grace?: string },
): Promise<void> {
  const id = readTokenId(text);
  const { grace } = readArguments(rotation, options);
  await using writer = await openWriter(env, options);
  const rotated = await writer.changes.rotateToken(id, grace);
  if (rotated === 'unknown') throw new CommandFailure(unknownToken(id));
  if (typeof rotated === 'string') {
    throw new CommandFailure(
      `token ${id} is ${rotated} and cannot be replaced; create a token: fleetbook token create`,
    );
  }
  const published = await writer.publish();
  const { oldExpiresAt, ...created } = rotated;
  const revoked = oldExpiresAt === null;
  if (options.json)
    return printJson({ ...created, old: { id, revoked, expiresAt: oldExpiresAt }, published });
  print(created.token);
  const old = revoked ? `is revoked${unlessPublished(published)}` : `is valid until ${oldExpiresAt}`;
  printAside(
    `token ${created.id} of ${created.organization}, ${created.scopes.join(' ')}, ${expiryText(created.expiresAt)}, replaces token ${id}, which ${old}. It cannot be shown again`,
  );
}

const readTokenId = (text: string) =>
  readId(text, 'token id', '`token list` shows and `token create` printed, not the token');
const unknownToken = (id: number) => `there is no token ${id}; see: fleetbook token list`;
const unlessPublished = (published: boolean) =>
  published ? '' : '; the cache cannot be reached, so readers may accept it for up to 10 seconds';
