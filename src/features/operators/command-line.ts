import type { Command } from 'commander';
import {
  add,
  addChange,
  type Changing,
  type Env,
  EXPIRES,
  GRACE,
  type Json,
} from '../../cli/terminal/options.ts';

export function addOperators(program: Command, { env }: { readonly env: Env }): void {
  const operator = program.command('operator').description('operators of the console, and their tokens');
  const load = () => import('./commands.ts');
  const NAME = ['<name>', 'the operator'] as const;
  const ID = [
    '<id>',
    'the number that `operator token list` shows and `operator token create` printed',
  ] as const;
  add(operator, 'list', 'show the operators, with role and last use').action(async (options: Json) =>
    (await load()).listOperatorsCommand(env(), options),
  );
  addChange(operator, 'create', 'create an operator, and print a token once')
    .argument('<name>', 'lower-case letters, digits, dots, dashes, underscores or @')
    .requiredOption('--role <role>', 'viewer reads, operator decides and runs, admin manages')
    .option(...EXPIRES)
    .action(async (name: string, options: Changing & { role: string; expires?: string }) =>
      (await load()).createOperatorCommand(env(), name, options),
    );
  const token = operator.command('token').description('tokens of operators');
  add(token, 'list', 'show tokens: name, operator, state, expiry and last use')
    .argument('[name]', 'the operator (default: all)')
    .action(async (name: string | undefined, options: Json) =>
      (await load()).listTokensOfOperators(env(), name, options),
    );
  addChange(token, 'create', 'create another token of an operator, and print it once')
    .argument(...NAME)
    .option('--name <name>', 'the program that uses it, e.g. prometheus; shown in lists and the audit log')
    .option(...EXPIRES)
    .action(async (name: string, options: Changing & { name?: string; expires?: string }) =>
      (await load()).issueTokenCommand(env(), name, options),
    );
  addChange(token, 'delete', 'revoke a token; its sessions end within a second')
    .argument(...ID)
    .action(async (id: string, options: Changing) =>
      (await load()).revokeTokenOfOperator(env(), id, options),
    );
  addChange(token, 'rotate', 'create a token that replaces another one, and print it once')
    .argument(...ID)
    .option(...GRACE)
    .action(async (id: string, options: Changing & { grace?: string }) =>
      (await load()).rotateTokenOfOperator(env(), id, options),
    );
  addChange(operator, 'set-role', 'change the role of an operator at once')
    .argument(...NAME)
    .argument('<role>', 'viewer, operator or admin')
    .action(async (name: string, role: string, options: Changing) =>
      (await load()).setRoleCommand(env(), name, role, options),
    );
  addChange(operator, 'use-oidc', 'let an operator sign in by OpenID Connect instead of tokens')
    .argument(...NAME)
    .action(async (name: string, options: Changing) => (await load()).useOidcCommand(env(), name, options));
  const SWITCHES = {
    disable: 'close the account of an operator; its sessions end within a second, and the name stays taken',
    enable: 'open the account of a disabled operator, with its tokens',
  };
  for (const change of ['disable', 'enable'] as const) {
    addChange(operator, change, SWITCHES[change])
      .argument(...NAME)
      .action(async (name: string, options: Changing) =>
        (await load()).setDisabledCommand(env(), name, change === 'disable', options),
      );
  }
}
