import type { Environment } from '../config/config.ts';
import { readSettings } from '../config/settings.ts';
import {
  createOperator,
  type OperatorChange,
  setOperatorByOidc,
  setOperatorDisabled,
  setOperatorPassword,
  setOperatorRole,
} from '../db/queries/operators.ts';
import { OPERATOR_NAME, ROLES, type Role } from '../domain/operator.ts';
import { hashPassword, passwordProblem } from '../domain/password.ts';
import { type DeciderOptions, decider } from './arguments.ts';
import { CommandFailure, UsageFailure } from './failure.ts';
import { openStoreOnly } from './open-store.ts';
import { print, printJson } from './print.ts';
import { askSecret, type Terminal } from './terminal.ts';

interface Options extends DeciderOptions {
  readonly json?: boolean;
}

export async function createOperatorCommand(
  env: Environment,
  name: string,
  options: Options & { readonly role: string },
): Promise<void> {
  const role = readRole(options.role);
  checkName(name);
  const by = decider({ settings: readSettings(env) }, options);
  const passwordHash = await hashPassword(await newPassword(name, process.stdin, process.stderr));
  await using store = openStoreOnly(env);
  if (!(await createOperator(store.db, by, { name, role, passwordHash }))) {
    throw new CommandFailure(
      `the name "${name}" is taken; see fleetbook operator list, or choose another: it stays with whoever had it first`,
    );
  }
  if (options.json) return printJson({ name, role });
  print(`operator ${name} can sign in to the operators’ pages, as ${role}`);
}

export async function setRoleCommand(
  env: Environment,
  name: string,
  text: string,
  options: Options,
): Promise<void> {
  const role = readRole(text);
  const by = decider({ settings: readSettings(env) }, options);
  await using store = openStoreOnly(env);
  const outcome = known(name, await setOperatorRole(store.db, by, name, role));
  if (options.json) return printJson({ name, role, changed: outcome === 'changed' });
  print(`operator ${name} ${outcome === 'changed' ? 'is' : 'was already'} ${role}`);
}

export async function setPasswordCommand(env: Environment, name: string, options: Options): Promise<void> {
  const by = decider({ settings: readSettings(env) }, options);
  const passwordHash = await hashPassword(await newPassword(name, process.stdin, process.stderr));
  await using store = openStoreOnly(env);
  known(name, await setOperatorPassword(store.db, by, name, passwordHash));
  if (options.json) return printJson({ name, changed: true });
  print(`operator ${name} has a new password; whoever was signed in by the old one has to sign in again`);
}

export async function useOidcCommand(env: Environment, name: string, options: Options): Promise<void> {
  if (!name.includes('@'))
    throw new UsageFailure(
      `"${name}" is no address, so no person of the issuer can prove it; use an account whose name is the person’s verified address`,
    );
  const by = decider({ settings: readSettings(env) }, options);
  await using store = openStoreOnly(env);
  known(name, await setOperatorByOidc(store.db, by, name));
  if (options.json) return printJson({ name, signsInBy: 'oidc' });
  print(
    `operator ${name} signs in by OpenID Connect: the person with this verified address gets the account at the next sign-in; its password is removed, its sessions have ended`,
  );
}

/** @param disabled whether the account is to be closed or opened */
export async function setDisabledCommand(
  env: Environment,
  name: string,
  disabled: boolean,
  options: Options,
): Promise<void> {
  const by = decider({ settings: readSettings(env) }, options);
  await using store = openStoreOnly(env);
  const outcome = known(name, await setOperatorDisabled(store.db, by, name, disabled));
  if (options.json) return printJson({ name, disabled, changed: outcome === 'changed' });
  const state = disabled ? 'disabled; its sessions are over' : 'enabled, with the way to sign in that it had';
  print(`operator ${name} ${outcome === 'changed' ? 'is' : 'was already'} ${state}`);
}

function known(name: string, outcome: OperatorChange): OperatorChange {
  if (outcome !== 'unknown') return outcome;
  throw new CommandFailure(`there is no operator "${name}"; see fleetbook operator list`);
}

function checkName(name: string): void {
  if (OPERATOR_NAME.test(name)) return;
  throw new UsageFailure(
    `"${name}" is no operator’s name; use 1 to 64 lower-case letters, digits, dots, dashes, underscores or @, e.g. ada or ada@example.com`,
  );
}

function readRole(text: string): Role {
  const role = ROLES.find((each) => each === text);
  if (role) return role;
  throw new UsageFailure(
    `"${text}" is no role; use ${ROLES.join(', ')}: each may do what those before it may`,
  );
}

/**
 * A new password: asked for twice on a terminal, which does not show it, else standard input up to its end, without the
 * line feed after it. Never an argument, which others could see.
 * @throws UsageFailure for one that does not do
 */
export async function newPassword(
  name: string,
  input: Terminal,
  output: NodeJS.WritableStream,
): Promise<string> {
  const password = input.isTTY
    ? await askSecret(`Password of ${name}: `, input, output)
    : await wholeInput(input);
  const problem = passwordProblem(password, name);
  if (problem !== undefined) throw new UsageFailure(problem);
  if (input.isTTY && (await askSecret('The same again: ', input, output)) !== password)
    throw new UsageFailure('the second password is another one; nothing was changed');
  return password;
}

/** More than any password has: whatever else is piped in is not gathered. */
const MOST_INPUT = 4096;

async function wholeInput(input: Terminal): Promise<string> {
  let text = '';
  for await (const part of input.setEncoding('utf8')) {
    text += part;
    if (text.length > MOST_INPUT) break;
  }
  return text.replace(/\r?\n$/, '');
}
