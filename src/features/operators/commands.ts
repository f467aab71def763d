import type { Command } from 'commander';
import { z } from 'zod';
import { rotation, tokenTerms } from '../../app/actions/inputs.ts';
import type { CommandContext } from '../../app/feature.ts';
import { CommandFailure, UsageFailure } from '../../cli/terminal/failure.ts';
import { openDatabase } from '../../cli/terminal/open.ts';
import {
  add,
  addChange,
  type Changing,
  decider,
  EXPIRES,
  expiryText,
  GRACE,
  type Json,
  readArguments,
  readId,
} from '../../cli/terminal/options.ts';
import { ago, alignedTable, print, printAside, printJson } from '../../cli/terminal/output.ts';
import type { Environment } from '../../config/config.ts';
import { readSettings } from '../../config/settings.ts';
import type { Database } from '../../db/connection/connect.ts';
import { type Decider, OPERATOR_NAME, ROLES } from '../../domain/operator.ts';
import {
  createOperator,
  issueToken,
  listOperators,
  type OperatorChange,
  setOperatorByOidc,
  setOperatorDisabled,
  setOperatorRole,
} from './db/operators.ts';
import {
  type IssuedToken,
  listOperatorTokens,
  revokeOperatorToken,
  rotateOperatorToken,
} from './db/tokens.ts';

export function define(program: Command, { env }: CommandContext): void {
  const operator = program.command('operator').description('operators of the console, and their tokens');
  const NAME = ['<name>', 'the operator'] as const;
  const ID = [
    '<id>',
    'the number that `operator token list` shows and `operator token create` printed',
  ] as const;
  add(operator, 'list', 'show the operators, with role and last use').action((options: Json) =>
    listOperatorsCommand(env(), options),
  );
  addChange(operator, 'create', 'create an operator, and print a token once')
    .argument('<name>', 'lower-case letters, digits, dots, dashes, underscores or @')
    .requiredOption('--role <role>', 'viewer reads, operator decides and runs, admin manages')
    .option(...EXPIRES)
    .action((name: string, options: Changing & { role: string; expires?: string }) =>
      createOperatorCommand(env(), name, options),
    );
  const token = operator.command('token').description('tokens of operators');
  add(token, 'list', 'show tokens: name, operator, state, expiry and last use')
    .argument('[name]', 'the operator (default: all)')
    .action((name: string | undefined, options: Json) => listTokensOfOperators(env(), name, options));
  addChange(token, 'create', 'create another token of an operator, and print it once')
    .argument(...NAME)
    .option('--name <name>', 'the program that uses it, e.g. prometheus; shown in lists and the audit log')
    .option(...EXPIRES)
    .action((name: string, options: Changing & { name?: string; expires?: string }) =>
      issueTokenCommand(env(), name, options),
    );
  addChange(token, 'delete', 'revoke a token; its sessions end within a second')
    .argument(...ID)
    .action((id: string, options: Changing) => revokeTokenOfOperator(env(), id, options));
  addChange(token, 'rotate', 'create a token that replaces another one, and print it once')
    .argument(...ID)
    .option(...GRACE)
    .action((id: string, options: Changing & { grace?: string }) =>
      rotateTokenOfOperator(env(), id, options),
    );
  addChange(operator, 'set-role', 'change the role of an operator at once')
    .argument(...NAME)
    .argument('<role>', 'viewer, operator or admin')
    .action((name: string, role: string, options: Changing) => setRoleCommand(env(), name, role, options));
  addChange(operator, 'use-oidc', 'let an operator sign in by OpenID Connect instead of tokens')
    .argument(...NAME)
    .action((name: string, options: Changing) => useOidcCommand(env(), name, options));
  const SWITCHES = {
    disable: 'close the account of an operator; its sessions end within a second, and the name stays taken',
    enable: 'open the account of a disabled operator, with its tokens',
  };
  for (const change of ['disable', 'enable'] as const) {
    addChange(operator, change, SWITCHES[change])
      .argument(...NAME)
      .action((name: string, options: Changing) =>
        setDisabledCommand(env(), name, change === 'disable', options),
      );
  }
}

const changedRole = z.object({
  role: z.enum(ROLES, {
    error: ({ input }) =>
      `"${input}" is no role; use ${ROLES.join(', ')}: each may do everything that those before it may`,
  }),
});

const newOperator = changedRole.extend({
  name: z.string().regex(OPERATOR_NAME, {
    error: ({ input }) =>
      `"${input}" cannot be an operator’s name; use 1 to 64 lower-case letters, digits, dots, dashes, underscores or @, e.g. ada or ada@example.com`,
  }),
});

type TokenOptions = Changing & { readonly expires?: string };

async function change<T>(
  env: Environment,
  options: Changing,
  work: (db: Database, by: Decider) => Promise<T>,
): Promise<T> {
  const by = decider({ settings: readSettings(env) }, options);
  await using store = openDatabase(env);
  return await work(store.db, by);
}

export async function createOperatorCommand(
  env: Environment,
  name: string,
  options: TokenOptions & { readonly role: string },
): Promise<void> {
  const { role } = readArguments(newOperator, { ...options, name }, { name: 'name' });
  const token = readTerms({ expires: options.expires });
  const issued = await change(env, options, (db, by) => createOperator(db, by, { name, role, token }));
  if (!issued)
    throw new CommandFailure(
      `the name "${name}" is taken; for another token: fleetbook operator token create ${name}`,
    );
  if (options.json) return printJson({ ...shownToken(issued), role });
  printToken(issued, `operator ${name} is ${role}`);
}

export async function issueTokenCommand(
  env: Environment,
  operator: string,
  options: TokenOptions & { readonly name?: string },
): Promise<void> {
  const terms = readTerms(options);
  const issued = await change(env, options, (db, by) => issueToken(db, by, operator, terms));
  if (!issued) throw unknownOperator(operator);
  if (options.json) return printJson(shownToken(issued));
  printToken(issued, `operator ${operator} signs in with tokens`);
}

export async function listTokensOfOperators(
  env: Environment,
  operator: string | undefined,
  options: Changing,
): Promise<void> {
  await using store = openDatabase(env);
  const tokens = await listOperatorTokens(store.db, operator);
  if (options.json) return printJson(tokens);
  if (tokens.length === 0)
    return print(
      `${operator === undefined ? 'there is no operator token' : `${operator} has no token`}; issue one: fleetbook operator token create ${operator ?? '<name>'}`,
    );
  const now = new Date();
  const rows = tokens.map(({ id, operator, name, state, createdAt, expiresAt, lastUsedAt }) => [
    String(id),
    operator,
    name ?? '-',
    state,
    ago(createdAt, now),
    expiresAt?.replace('T', ' ').replace(/:\d\dZ$/, '') ?? 'never',
    lastUsedAt === null ? 'never' : ago(lastUsedAt, now),
  ]);
  print(alignedTable(['ID', 'OPERATOR', 'NAME', 'STATE', 'CREATED', 'EXPIRES', 'LAST USED'], rows));
}

export async function revokeTokenOfOperator(
  env: Environment,
  text: string,
  options: Changing,
): Promise<void> {
  const id = readTokenId(text);
  const outcome = await change(env, options, (db, by) => revokeOperatorToken(db, by, id));
  if (outcome === undefined) throw unknownToken(id);
  if (options.json) return printJson({ id, revoked: true, wasRevoked: outcome === 'was revoked' });
  print(
    outcome === 'was revoked'
      ? `operator token ${id} was revoked already`
      : `operator token ${id} is revoked; its sessions end within a second`,
  );
}

export async function rotateTokenOfOperator(
  env: Environment,
  text: string,
  options: Changing & { readonly grace?: string },
): Promise<void> {
  const id = readTokenId(text);
  const { grace } = readArguments(rotation, options);
  const rotated = await change(env, options, (db, by) => rotateOperatorToken(db, by, id, grace));
  if (rotated === 'unknown') throw unknownToken(id);
  if (typeof rotated === 'string')
    throw new CommandFailure(
      `operator token ${id} is ${rotated} and cannot be rotated; issue one: fleetbook operator token create <name>`,
    );
  const { oldExpiresAt } = rotated;
  if (options.json)
    return printJson({
      ...shownToken(rotated),
      old: { id, revoked: oldExpiresAt === null, expiresAt: oldExpiresAt },
    });
  printToken(rotated, `token ${id} is ${oldExpiresAt === null ? 'revoked' : `good until ${oldExpiresAt}`}`);
}

export async function setRoleCommand(
  env: Environment,
  name: string,
  text: string,
  options: Changing,
): Promise<void> {
  const { role } = readArguments(changedRole, { role: text }, { role: 'role' });
  const outcome = known(name, await change(env, options, (db, by) => setOperatorRole(db, by, name, role)));
  if (options.json) return printJson({ name, role, changed: outcome === 'changed' });
  print(`operator ${name} ${outcome === 'changed' ? 'is' : 'was already'} ${role}`);
}

export async function useOidcCommand(env: Environment, name: string, options: Changing): Promise<void> {
  if (!name.includes('@'))
    throw new UsageFailure(
      `"${name}" is no email address, so the issuer cannot verify it; use an account whose name is the person’s verified address`,
    );
  known(name, await change(env, options, (db, by) => setOperatorByOidc(db, by, name)));
  if (options.json) return printJson({ name, signsInBy: 'oidc' });
  print(
    `operator ${name} signs in by OpenID Connect: the person with this verified address gets the account at the next sign-in. Its tokens are revoked, and its sessions have ended`,
  );
}

/** @param disabled false enables the operator */
export async function setDisabledCommand(
  env: Environment,
  name: string,
  disabled: boolean,
  options: Changing,
): Promise<void> {
  const outcome = await change(env, options, (db, by) => setOperatorDisabled(db, by, name, disabled));
  known(name, outcome);
  if (options.json) return printJson({ name, disabled, changed: outcome === 'changed' });
  const state = disabled ? 'disabled; its sessions have ended' : 'enabled, with its tokens';
  print(`operator ${name} ${outcome === 'changed' ? 'is' : 'was already'} ${state}`);
}

export async function listOperatorsCommand(env: Environment, options: Changing): Promise<void> {
  await using store = openDatabase(env);
  const operators = await listOperators(store.db);
  if (options.json) return printJson(operators);
  if (operators.length === 0)
    return print('there is no operator; create one: fleetbook operator create <name> --role admin');
  const now = new Date();
  const rows = operators.map(({ name, role, signsInBy, tokens, createdAt, disabledAt, lastSeenAt }) => [
    name,
    role,
    signsInBy === 'oidc' ? 'OpenID Connect' : tokens === 1 ? '1 token' : `${tokens} tokens`,
    disabledAt === null ? 'enabled' : 'disabled',
    ago(createdAt, now),
    lastSeenAt === null ? 'never' : ago(lastSeenAt, now),
  ]);
  print(alignedTable(['OPERATOR', 'ROLE', 'SIGNS IN BY', 'STATE', 'CREATED', 'LAST SEEN'], rows));
}

/** Prints the token alone to standard output, and the rest to standard error. */
function printToken({ id, token, expiresAt }: IssuedToken, what: string): void {
  print(token);
  printAside(
    `${what}; token ${id}, ${expiryText(expiresAt)}. It is shown once; revoke it with: fleetbook operator token delete ${id}`,
  );
}

const shownToken = ({ id, operator, token, name, expiresAt }: IssuedToken) => ({
  id,
  operator,
  token,
  name,
  expiresAt,
});

function readTerms(options: { readonly name?: string | undefined; readonly expires?: string | undefined }) {
  const { name = null, expires } = readArguments(tokenTerms, options);
  return { name, expiresAt: expires?.toISOString() ?? null };
}

const readTokenId = (text: string) =>
  readId(text, 'token id', '`operator token list` shows and `operator token create` printed, not the token');
const unknownToken = (id: number) =>
  new CommandFailure(`there is no operator token ${id}; see fleetbook operator token list`);
const unknownOperator = (name: string) =>
  new CommandFailure(`there is no operator "${name}"; see fleetbook operator list`);

function known(name: string, outcome: OperatorChange): OperatorChange {
  if (outcome === 'unknown') throw unknownOperator(name);
  return outcome;
}
