/** `fleetbook operator …`: operators of the console, their roles and their tokens. */

import { type DeciderOptions, decider, readId } from '../../cli/terminal/arguments.ts';
import { CommandFailure, UsageFailure } from '../../cli/terminal/failure.ts';
import { openDatabase } from '../../cli/terminal/open-database.ts';
import { print, printAside, printJson, printText } from '../../cli/terminal/print.ts';
import { ago, alignedTable } from '../../cli/terminal/table.ts';
import { expiry, readExpiry, readGrace, readTokenName } from '../../cli/terminal/token-terms.ts';
import type { Environment } from '../../config/config.ts';
import { readSettings } from '../../config/settings.ts';
import {
  type Decider,
  OPERATOR_NAME,
  type OperatorSummary,
  ROLES,
  type Role,
} from '../../domain/operator.ts';
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
  type OperatorTokenSummary,
  revokeOperatorToken,
  rotateOperatorToken,
  type TokenTerms,
} from './db/tokens.ts';

interface Options extends DeciderOptions {
  readonly json?: boolean;
}

export interface TokenOptions extends Options {
  readonly expires?: string;
}

export async function createOperatorCommand(
  env: Environment,
  name: string,
  options: TokenOptions & { readonly role: string },
): Promise<void> {
  const role = readRole(options.role);
  if (!OPERATOR_NAME.test(name))
    throw new UsageFailure(
      `"${name}" is no operator’s name; use 1 to 64 lower-case letters, digits, dots, dashes, underscores or @, e.g. ada or ada@example.com`,
    );
  const token = readTerms(options);
  const by = deciderOf(env, options);
  await using store = openDatabase(env);
  const issued = await createOperator(store.db, by, { name, role, token });
  if (!issued)
    throw new CommandFailure(
      `the name "${name}" is taken; for another token: fleetbook operator token ${name}`,
    );
  if (options.json) return printJson({ ...shownToken(issued), role });
  printToken(issued, `operator ${name} is ${role}`);
}

/** Issues another token to an operator. */
export async function issueTokenCommand(
  env: Environment,
  operator: string,
  options: TokenOptions & { readonly name?: string },
): Promise<void> {
  const terms = readTerms(options);
  const by = deciderOf(env, options);
  await using store = openDatabase(env);
  const issued = await issueToken(store.db, by, operator, terms);
  if (!issued) throw unknownOperator(operator);
  if (options.json) return printJson(shownToken(issued));
  printToken(issued, `operator ${operator} signs in with tokens`);
}

export async function listTokensOfOperators(
  env: Environment,
  operator: string | undefined,
  options: Options,
): Promise<void> {
  await using store = openDatabase(env);
  const tokens = await listOperatorTokens(store.db, operator);
  if (options.json) return printJson(tokens);
  if (tokens.length > 0) return printText(tokenTable(tokens, new Date()));
  print(
    `${operator === undefined ? 'there is no operator token' : `${operator} has no token`}; issue one: fleetbook operator token ${operator ?? '<name>'}`,
  );
}

export async function revokeTokenOfOperator(env: Environment, text: string, options: Options): Promise<void> {
  const id = readTokenId(text);
  const by = deciderOf(env, options);
  await using store = openDatabase(env);
  const outcome = await revokeOperatorToken(store.db, by, id);
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
  options: Options & { readonly grace?: string },
): Promise<void> {
  const id = readTokenId(text);
  const graceMs = options.grace === undefined ? 0 : readGrace(options.grace);
  const by = deciderOf(env, options);
  await using store = openDatabase(env);
  const rotated = await rotateOperatorToken(store.db, by, id, graceMs);
  if (rotated === 'unknown') throw unknownToken(id);
  if (typeof rotated === 'string')
    throw new CommandFailure(
      `operator token ${id} is ${rotated}, so nothing replaces it; issue one: fleetbook operator token <name>`,
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
  options: Options,
): Promise<void> {
  const role = readRole(text);
  const by = deciderOf(env, options);
  await using store = openDatabase(env);
  const outcome = known(name, await setOperatorRole(store.db, by, name, role));
  if (options.json) return printJson({ name, role, changed: outcome === 'changed' });
  print(`operator ${name} ${outcome === 'changed' ? 'is' : 'was already'} ${role}`);
}

export async function useOidcCommand(env: Environment, name: string, options: Options): Promise<void> {
  if (!name.includes('@'))
    throw new UsageFailure(
      `"${name}" is no address, so no person of the issuer can prove it; use an account whose name is the person’s verified address`,
    );
  const by = deciderOf(env, options);
  await using store = openDatabase(env);
  known(name, await setOperatorByOidc(store.db, by, name));
  if (options.json) return printJson({ name, signsInBy: 'oidc' });
  print(
    `operator ${name} signs in by OpenID Connect: the person with this verified address gets the account at the next sign-in. Its tokens are revoked, and its sessions have ended`,
  );
}

/** @param disabled whether the operator is to be disabled or enabled */
export async function setDisabledCommand(
  env: Environment,
  name: string,
  disabled: boolean,
  options: Options,
): Promise<void> {
  const by = deciderOf(env, options);
  await using store = openDatabase(env);
  const outcome = known(name, await setOperatorDisabled(store.db, by, name, disabled));
  if (options.json) return printJson({ name, disabled, changed: outcome === 'changed' });
  const state = disabled ? 'disabled; its sessions are over' : 'enabled, with its tokens';
  print(`operator ${name} ${outcome === 'changed' ? 'is' : 'was already'} ${state}`);
}

/** @throws UsageFailure always: the command is gone */
export function setPasswordCommand(): never {
  throw new UsageFailure(
    'operators have no passwords any more, they sign in with tokens; issue one: fleetbook operator token <name>',
  );
}

export async function listOperatorsCommand(env: Environment, options: Options): Promise<void> {
  await using store = openDatabase(env);
  const operators = await listOperators(store.db);
  if (options.json) return printJson(operators);
  if (operators.length > 0) printText(operatorTable(operators, new Date()));
  else print('there is no operator; create one: fleetbook operator create <name> --role admin');
}

function operatorTable(operators: readonly OperatorSummary[], now: Date): string {
  return alignedTable(
    ['OPERATOR', 'ROLE', 'SIGNS IN BY', 'STATE', 'MADE', 'LAST SEEN'],
    operators.map(({ name, role, signsInBy, tokens, createdAt, disabledAt, lastSeenAt }) => [
      name,
      role,
      signsInBy === 'oidc' ? 'OpenID Connect' : tokens === 1 ? '1 token' : `${tokens} tokens`,
      disabledAt === null ? 'enabled' : 'disabled',
      ago(createdAt, now),
      lastSeenAt === null ? 'never' : ago(lastSeenAt, now),
    ]),
  );
}

function tokenTable(tokens: readonly OperatorTokenSummary[], now: Date): string {
  return alignedTable(
    ['ID', 'OPERATOR', 'NAME', 'STATE', 'MADE', 'EXPIRES', 'LAST USED'],
    tokens.map(({ id, operator, name, state, createdAt, expiresAt, lastUsedAt }) => [
      String(id),
      operator,
      name ?? '-',
      state,
      ago(createdAt, now),
      expiresAt?.replace('T', ' ').replace(/:\d\dZ$/, '') ?? 'never',
      lastUsedAt === null ? 'never' : ago(lastUsedAt, now),
    ]),
  );
}

/** The token alone goes to standard output. */
function printToken({ id, token, expiresAt }: IssuedToken, what: string): void {
  print(token);
  printAside(
    `${what}; token ${id}, ${expiry(expiresAt)}. It is shown once; revoke it with: fleetbook operator revoke ${id}`,
  );
}

const shownToken = ({ id, operator, token, name, expiresAt }: IssuedToken) => ({
  id,
  operator,
  token,
  name,
  expiresAt,
});

const deciderOf = (env: Environment, options: DeciderOptions): Decider =>
  decider({ settings: readSettings(env) }, options);

function readTerms({ name, expires }: { readonly name?: string; readonly expires?: string }): TokenTerms {
  return {
    name: name === undefined ? null : readTokenName(name),
    expiresAt: expires === undefined ? null : readExpiry(expires, new Date()).toISOString(),
  };
}

const readTokenId = (text: string) =>
  readId(text, 'token id', '`operator tokens` shows and `operator token` printed, not the token');
const unknownToken = (id: number) =>
  new CommandFailure(`there is no operator token ${id}; see fleetbook operator tokens`);
const unknownOperator = (name: string) =>
  new CommandFailure(`there is no operator "${name}"; see fleetbook operator list`);

function known(name: string, outcome: OperatorChange): OperatorChange {
  if (outcome === 'unknown') throw unknownOperator(name);
  return outcome;
}

function readRole(text: string): Role {
  const role = ROLES.find((each) => each === text);
  if (role) return role;
  throw new UsageFailure(
    `"${text}" is no role; use ${ROLES.join(', ')}: each may do what those before it may`,
  );
}
